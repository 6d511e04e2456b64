"""What is wrong in a scenario's roles and steps beyond its model: unknown names, and steps that cannot be taken?

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress

from harness.contracts import registry
from harness.contracts.registry import unknown_message
from harness.contracts.targets import Role
from harness.errors import PluginError
from harness.scenario.conditions import parse_condition, roles_in
from harness.scenario.draft import Draft
from harness.scenario.errors import parameter_problems
from harness.scenario.fault_rules import capabilities, missing_partition, of_metadata, releases, witnesses
from harness.scenario.model import StepSpec
from harness.scenario.plan import ALONE, WRITER
from harness.scenario.source import KeyPath, Problem

ACTIONS = {
    "inject": {"target", "parameters", "within_s"},
    "heal": set(),
    "write": {"parameters", "within_s"},
    "when": {"within_s"},
    "wait_s": set(),
    "hold": {"target", "parameters", "within_s"},
    "lose_answer": {"target", "parameters", "within_s"},
    "release": set(),
}
"""Of which each step has one, with the other keys that it takes."""


def roles(draft: Draft) -> Iterator[Problem]:
    """There is a broker for each role, and one controller; replicas are roles or brokers, each of them once."""
    if draft.brokers is None or draft.roles is None:
        return  # the model reports it
    if len(draft.roles) > draft.brokers:
        yield Problem(("roles",), f"{len(draft.roles)} roles for {draft.brokers} brokers")
    controllers = [name for name, place in draft.roles.items() if place == Role.CONTROLLER]
    if len(controllers) > 1:
        yield Problem(("roles", controllers[1]), f"{controllers[0]} is the controller")
    for index, topic in draft.topics.items():
        at: KeyPath = ("topics", index, "replicas")
        ids = [str(broker_id) for broker_id in range(draft.brokers)]
        yield from _known(at, topic.replicas, [*draft.roles, *ids])
        if topic.replicas and len(topic.replicas) != topic.replication_factor:
            yield Problem(at, f"names {len(topic.replicas)}, and replication_factor is {topic.replication_factor}")


def steps(draft: Draft) -> Iterator[Problem]:
    """A scenario has steps or faults; each step does one thing that can be done, to roles that there are."""
    if draft.steps and (draft.faults or draft.mix):
        yield Problem(("steps",), "give steps, or faults and a mix")
    in_force: list[set[str]] = []
    caught: set[str] = set()
    for index, step in draft.steps.items():
        at: KeyPath = ("steps", index)
        actions = [name for name in ACTIONS if getattr(step, name) is not None]
        if len(actions) != 1:
            yield Problem(at, f"give one of {', '.join(ACTIONS)}, not {' and '.join(actions) or 'none'}")
            continue
        yield from _step(draft, at, step)
        yield from _without_use(at, step, actions[0])
        if step.heal is not None:
            healed = set(roles_in(step.heal))
            yield from _heal((*at, "heal"), healed & (draft.roles or {}).keys(), in_force)
            in_force = [hit for hit in in_force if not hit <= healed]
        if step.inject is not None:
            in_force.append(set(roles_in(step.target)))
        yield from _messages(at, step, caught)


def _messages(at: KeyPath, step: StepSpec, caught: set[str]) -> Iterator[Problem]:
    """Names of messages are given once, and used while they are intercepted."""
    used = step.release or ""
    if step.when is not None:
        with suppress(ValueError):  # the rule on conditions reports it
            used = parse_condition(step.when).messages
    if used and used not in caught:
        yield Problem((*at, "release" if step.release else "when"), f"no messages {used} are intercepted then")
    if step.messages in caught:
        yield Problem((*at, _key(step)), f"messages {step.messages} are intercepted already")
    if step.messages:
        caught.add(step.messages)
    if step.release:
        caught.discard(step.release)


def _without_use(at: KeyPath, step: StepSpec, action: str) -> Iterator[Problem]:
    others = StepSpec.model_fields.keys() - ACTIONS.keys() - ACTIONS[action]
    nothing_said = StepSpec()
    for name in sorted(others):
        if getattr(step, name) != getattr(nothing_said, name):
            yield Problem((*at, name), f"{action} takes no {name}")


def _heal(at: KeyPath, healed: Set[str], in_force: Iterable[Set[str]]) -> Iterator[Problem]:
    """What hit several brokers at once can only be undone on all of them."""
    for role in sorted(healed):
        hits = [hit for hit in in_force if role in hit]
        if not hits:
            yield Problem(at, f"nothing is in force on {role} then")
        for others in sorted({", ".join(sorted(hit - healed)) for hit in hits if hit - healed}):
            yield Problem(at, f"a fault in force on {role} is in force on {others} too: heal it on all of them")


def _step(draft: Draft, at: KeyPath, step: StepSpec) -> Iterator[Problem]:
    if step.fault is not None:
        yield from _inject(draft, at, step.fault, step)
    if step.heal is not None:
        yield from _known((*at, "heal"), roles_in(step.heal), draft.roles)
    if step.write is not None:
        yield from parameter_problems(registry.workload(WRITER).Parameters, step.parameters, at)
        for name in sorted(step.parameters.keys() & {*ALONE, "records"}):
            yield Problem(
                (*at, "parameters", name),
                "is not allowed: the step starts one producer, and write is its number of records",
            )
    if step.when is not None:
        yield from _when(draft, (*at, "when"), step.when)


def _inject(draft: Draft, at: KeyPath, kind: str, step: StepSpec) -> Iterator[Problem]:
    yield from _known((*at, "target"), roles_in(step.target), draft.roles)
    try:
        plugin = registry.fault(kind)
    except PluginError as error:
        yield Problem((*at, _key(step)), str(error))
        return
    yield from parameter_problems(plugin.Parameters, step.fault_parameters, at)
    yield from capabilities(draft, (*at, _key(step)), plugin)
    yield from witnesses(draft, (*at, _key(step)), plugin)
    yield from of_metadata(draft, at, plugin, step.parameters)
    yield from releases(draft, at, plugin, step.parameters)
    if Role.IDS not in plugin.accepts:
        yield Problem((*at, _key(step)), f"{kind} takes {', '.join(plugin.accepts)}, and roles are brokers")


def _key(step: StepSpec) -> str:
    return "inject" if step.inject is not None else "hold" if step.hold is not None else "lose_answer"


def _when(draft: Draft, at: KeyPath, text: str) -> Iterator[Problem]:
    try:
        condition = parse_condition(text)
    except ValueError as error:
        yield Problem(at, str(error))
        return
    yield from _known(at, condition.roles, draft.roles)
    if condition.topic and (wrong := missing_partition(draft, condition.topic, condition.partition)):
        yield Problem(at, wrong)


def _known(at: KeyPath, names: Iterable[str], known: Iterable[str] | None) -> Iterator[Problem]:
    """Each is one of those that are known, which malformed roles are not, and is named once."""
    if known is None:
        return
    for name, times in Counter(names).items():
        if name not in known:
            yield Problem(at, unknown_message("role", name, list(known)))
        elif times > 1:
            yield Problem(at, f"{name} is named twice")
