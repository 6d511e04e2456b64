"""What is wrong in what a scenario leaves to the seed, and in the time that it lets operations take?

Each rule is a generator of problems over the well-formed parts of a scenario.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from harness.cluster.driver import RunExecutor
from harness.contracts import registry
from harness.scenario.draft import Draft
from harness.scenario.model import Latencies
from harness.scenario.source import Problem


def draws(draft: Draft, of_brokers: Iterable[Callable[[Draft], Iterator[Problem]]]) -> Iterator[Problem]:
    """Ranges go from less to more, and the rest of the scenario works with every draw, even with the fewest brokers.

    `of_brokers`: the rules that ask for the number of brokers.
    """
    spec = draft.draws
    if spec is None:
        return
    for name, span in (("brokers", spec.brokers), ("replication_factor", spec.replication_factor)):
        if span is not None and draft.external is not None:
            yield Problem(("draws", name), "is not drawn for an external cluster")
        if span is not None and span[0] > span[1]:
            yield Problem(("draws", name), f"must be a range from less to more, not {span}")
    if draft.brokers is None:
        return
    fewest = spec.brokers[0] if spec.brokers is not None else draft.brokers
    if spec.replication_factor is not None and spec.replication_factor[0] > fewest:
        yield Problem(
            ("draws", "replication_factor"),
            f"{spec.replication_factor[0]} replicas do not fit on {fewest} brokers; allowed: 1 to {fewest}",
        )
    if spec.brokers is not None and fewest < draft.brokers:
        of_fewest = replace(draft, brokers=fewest)
        before = [problem for rule in of_brokers for problem in rule(draft)]
        for problem in (problem for rule in of_brokers for problem in rule(of_fewest)):
            if problem not in before:
                yield Problem(problem.path, f"with {fewest} brokers (draws.brokers): {problem.message}")


def latencies(draft: Draft) -> Iterator[Problem]:
    """Latencies are for virtual time only, and the brokers that stall belong to the cluster."""
    if draft.latencies is None or draft.latencies == Latencies():
        return
    if draft.driver is None or not registry.is_driver(draft.driver):
        return
    if not issubclass(registry.driver_class(draft.driver), RunExecutor):
        yield Problem(
            ("latencies",), f"the driver {draft.driver} runs on real disks and processors; allowed: simulated"
        )
    if draft.brokers is None:
        return
    for index, broker_id in enumerate(draft.latencies.slow_brokers):
        if not 0 <= broker_id < draft.brokers:
            yield Problem(
                ("latencies", "slow_brokers", index),
                f"there is no broker {broker_id}; allowed: 0 to {draft.brokers - 1}",
            )
