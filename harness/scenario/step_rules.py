"""What is wrong in a scenario's roles and steps beyond its model: unknown names, and steps that cannot be taken?

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field

from harness.cluster.systems.system import system_named
from harness.contracts import registry
from harness.contracts.registry import unknown_message
from harness.contracts.targets import Role, parse_target
from harness.errors import PluginError, ScenarioError
from harness.scenario.conditions import parse_condition, roles_in
from harness.scenario.draft import Draft
from harness.scenario.errors import parameter_problems
from harness.scenario.fault_rules import capabilities, missing_partition, of_metadata, releases, witnesses
from harness.scenario.model import StepSpec
from harness.scenario.plan import ALONE, WRITER
from harness.scenario.source import KeyPath, Problem
from harness.values import PYTHON

ONE_BROKER = (Role.LEADER, Role.COORDINATOR, Role.TRANSACTION_COORDINATOR, Role.CONTROLLER)
"""What a request can be sent to, beside roles of steps and broker ids."""
ACTIONS = {
    "inject": {"target", "parameters", "within_s"},
    "heal": set(),
    "write": {"parameters", "within_s"},
    "when": {"within_s"},
    "wait_s": set(),
    "hold": {"target", "parameters", "within_s"},
    "lose_answer": {"target", "parameters", "within_s"},
    "release": set(),
    "ask": {"target", "parameters", "version", "expect", "promised", "keep", "later", "times", "every_s", "within_s"},
    "answer": {"expect", "keep", "within_s"},
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
    asked = _Asked()
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
        if step.ask is not None or step.answer is not None:
            yield from _request(draft, at, step, asked)


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


@dataclass(slots=True)
class _Asked:
    """What earlier steps have asked and kept."""

    kept: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    """Requests whose answers are not awaited yet."""


def _request(draft: Draft, at: KeyPath, step: StepSpec, asked: _Asked) -> Iterator[Problem]:
    """A request is one of Kafka's, and names what is known; an answer is that of one request."""
    if step.answer is not None and step.answer not in asked.open:
        yield Problem((*at, "answer"), f"no request {step.answer} is sent with `later` before, or it is answered")
    if step.ask is not None:
        yield from _fields(at, step)
        yield from _asked_target(draft, (*at, "target"), step.target)
    if step.later is None and step.expect is None and step.promised is None:
        yield Problem(at, "say what answer to expect: {} if any is right")
    if step.later is not None and (step.expect is not None or step.keep or step.times > 1):
        yield Problem((*at, "later"), "takes no expect, keep or times: the step `answer` has them")
    if step.later in asked.open:
        yield Problem((*at, "later"), f"the request {step.later} is not answered yet")
    for name in sorted(_names_in([step.parameters, step.expect, step.promised]) - asked.kept):
        yield Problem(at, f"${name}: no step before keeps {name}")
    asked.open.discard(step.answer or "")
    asked.open |= {step.later} if step.later else set()
    asked.kept |= step.keep.keys()


def _fields(at: KeyPath, step: StepSpec) -> Iterator[Problem]:
    from harness.contracts.requests import REQUESTS, unknown_fields, versions_of  # loads the broker's codecs

    if step.ask not in REQUESTS:
        yield Problem((*at, "ask"), unknown_message("request", step.ask or "", sorted(REQUESTS)))
        return
    first, last = versions_of(step.ask)
    if step.version is None or not first <= step.version <= last:
        yield Problem((*at, "version"), f"state a version of {step.ask} from {first} to {last}")
        return
    for problem in unknown_fields(step.ask, step.parameters, step.version):
        yield Problem((*at, "parameters"), problem)


def _asked_target(draft: Draft, at: KeyPath, text: str) -> Iterator[Problem]:
    """A request goes to one broker."""
    if draft.roles is None or text in draft.roles:
        return
    try:
        target = parse_target(text)
    except ValueError as error:
        yield Problem(at, f"not a role of this scenario, and {error}")
        return
    one = target.role in ONE_BROKER or (target.role is Role.IDS and len(target.broker_ids) == 1)
    if not one:
        yield Problem(at, f"{text} is not one broker: give a role, {', '.join(ONE_BROKER)}, or a broker id")
    elif target.topic and (wrong := missing_partition(draft, target.topic, target.partition)):
        yield Problem(at, wrong)


def _names_in(value: object) -> set[str]:
    """Return the names that fields refer to, as `$M` does."""
    if isinstance(value, Mapping):
        return set().union(*map(_names_in, value.values()))
    if isinstance(value, list):
        return set().union(*map(_names_in, value))
    return {value[1:]} if isinstance(value, str) and value.startswith("$") else set()


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
    with suppress(ScenarioError):  # the rule on names reports it
        system = system_named(draft.system or PYTHON)
        if condition.logged and condition.logged not in system.emits:
            yield Problem(at, f"{system.name} does not log {condition.logged}, by which this is seen")


def _known(at: KeyPath, names: Iterable[str], known: Iterable[str] | None) -> Iterator[Problem]:
    """Each is one of those that are known, which malformed roles are not, and is named once."""
    if known is None:
        return
    for name, times in Counter(names).items():
        if name not in known:
            yield Problem(at, unknown_message("role", name, list(known)))
        elif times > 1:
            yield Problem(at, f"{name} is named twice")
