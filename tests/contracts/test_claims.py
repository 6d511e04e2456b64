from dataclasses import replace
from typing import Any

import pytest

from harness.contracts import registry
from harness.contracts.claims import Claim, claim_of, in_the_way
from harness.contracts.targets import parse_target

ZOOKEEPER = Claim(fault="pause-zookeeper", may_overlap=True, brokers=frozenset())


def kill(*brokers: int) -> Claim:
    return Claim(fault="kill", may_overlap=False, brokers=frozenset(brokers))


def delay(*brokers: int) -> Claim:
    return Claim(fault="delay", may_overlap=True, brokers=frozenset(brokers))


def of_member(fault: str, number: int) -> Claim:
    return Claim(fault=fault, may_overlap=False, brokers=frozenset(), member=f"member {number} of group-1")


def isolate(*brokers: int) -> Claim:
    return Claim(fault="isolate", may_overlap=False, brokers=frozenset(brokers))


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        pytest.param(kill(1), kill(1, 2), True, id="two of a kind share a broker"),
        pytest.param(kill(1), isolate(1), True, id="two kinds share a broker"),
        pytest.param(kill(1), isolate(2), False, id="two kinds on brokers of their own"),
        pytest.param(kill(1), delay(1), False, id="one of them may overlap"),
        pytest.param(delay(1), delay(1), True, id="one that may_overlap, but not with itself"),
        pytest.param(delay(1), delay(2), False, id="one that may_overlap, on brokers of their own"),
        pytest.param(ZOOKEEPER, ZOOKEEPER, True, id="two of a kind that hit no broker"),
        pytest.param(ZOOKEEPER, kill(1), False, id="brokers and something else"),
        pytest.param(of_member("kill", 1), of_member("pause", 1), True, id="two kinds on one member"),
        pytest.param(of_member("kill", 1), of_member("pause", 2), False, id="two kinds on members of their own"),
        pytest.param(of_member("kill", 1), of_member("kill", 1), True, id="two of a kind on one member"),
        pytest.param(of_member("kill", 1), of_member("kill", 2), False, id="two of a kind on members of their own"),
        pytest.param(of_member("kill", 1), ZOOKEEPER, False, id="a member and something else"),
    ],
)
def test_two_injections_exclude_each_other_or_not(one: Claim, other: Claim, excluded: bool) -> None:
    assert one.excludes(other) is excluded
    assert other.excludes(one) is excluded


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        pytest.param(("reassign", "leader(orders,0)", {}), ("cancel-reassignment", "leader(orders,1)", {}), True,
                     id="a reassignment and another one that is taken back"),
        pytest.param(("preferred-election", "leader(orders,0)", {}), ("add-partitions", "leader(orders,0)", {}), True,
                     id="an order of replicas and new partitions"),
        pytest.param(("reassign", "leader(orders,0)", {}), ("delay", "1", {}), False,
                     id="a reassignment and slow links"),
        pytest.param(("overwrite-controller", "controller", {}), ("move-controller", "controller", {}), True,
                     id="two that write to what makes a controller"),
        pytest.param(("isolate", "1", {"whole_s": 1}), ("isolate", "2", {}), True,
                     id="links that flap and links that are cut"),
        pytest.param(("isolate", "1", {"whole_s": 1}), ("partition", "2", {"shape": "halves"}), True,
                     id="links that flap and parts"),
        pytest.param(("isolate", "1", {"whole_s": 1}), ("kill", "2", {}), False,
                     id="links that flap and another broker that dies"),
        pytest.param(("isolate", "1", {}), ("isolate", "2", {}), False,
                     id="links of two brokers that are cut"),
        pytest.param(("delete-controller-epoch", "controller", {}), ("kill", "1", {}), False,
                     id="a controller and a kill"),
        pytest.param(("change-config", "1", {"config": {"a": "b"}, "topic": "t"}),
                     ("change-config", "2", {"config": {"a": "c"}, "topic": "t"}), True,
                     id="one topic's configuration"),
        pytest.param(("change-config", "1", {"config": {"a": "b"}, "topic": "t"}),
                     ("change-config", "2", {"config": {"a": "c"}, "topic": "u"}), False,
                     id="two topics' configurations"),
        pytest.param(("change-config", "1", {"config": {"a": "b"}}),
                     ("change-config", "2", {"config": {"a": "c"}}), False,
                     id="two brokers' configurations"),
        pytest.param(("hostile-client", "1", {}), ("delay", "2", {}), False,
                     id="a hostile client and slow links elsewhere"),
    ],
)  # fmt: skip
def test_two_that_touch_the_same_are_never_in_force_together(
    one: tuple[str, str, dict[str, Any]], other: tuple[str, str, dict[str, Any]], excluded: bool
) -> None:
    first, second = (
        claim_of(registry.fault(kind), parse_target(target), (broker,), parameters)
        for broker, (kind, target, parameters) in enumerate((one, other))
    )
    assert first.excludes(second) is second.excludes(first) is excluded


@pytest.mark.parametrize("other", ["kill", "pause", "isolate"])
def test_a_hostile_client_has_its_broker_to_itself(other: str) -> None:
    one, two = (claim_of(registry.fault(kind), parse_target("1"), (1,), {}) for kind in ("hostile-client", other))
    assert one.excludes(two)


@pytest.mark.parametrize(
    ("claim", "held", "numbers"),
    [
        pytest.param(kill(1), [], [], id="nothing is in force"),
        pytest.param(kill(1), [kill(0), isolate(1)], [1], id="what claims the same"),
        pytest.param(replace(kill(1), beside=1), [kill(0)], [], id="as many as it may be beside"),
        pytest.param(replace(kill(1), beside=1), [kill(0), kill(2)], [0, 1], id="more than it may be beside"),
        pytest.param(replace(kill(1), beside=5), [replace(kill(0), beside=0)], [0], id="one that is to be alone"),
        pytest.param(kill(1), [replace(kill(0), beside=0)], [], id="it is of the schedule, and that one of the mix"),
    ],
)
def test_what_is_in_the_way_of_another_one(claim: Claim, held: list[Claim], numbers: list[int]) -> None:
    assert [*in_the_way(claim, dict(enumerate(held)))] == numbers
