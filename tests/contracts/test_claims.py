import pytest

from harness.contracts.claims import Claim

ZOOKEEPER = Claim(fault="pause-zookeeper", composes=True, brokers=frozenset())


def kill(*brokers: int) -> Claim:
    return Claim(fault="kill", composes=False, brokers=frozenset(brokers))


def delay(*brokers: int) -> Claim:
    return Claim(fault="delay", composes=True, brokers=frozenset(brokers))


def isolate(*brokers: int) -> Claim:
    return Claim(fault="isolate", composes=False, brokers=frozenset(brokers))


@pytest.mark.parametrize(
    ("one", "other", "excluded"),
    [
        pytest.param(kill(1), kill(1, 2), True, id="two of a kind share a broker"),
        pytest.param(kill(1), isolate(1), True, id="two kinds share a broker"),
        pytest.param(kill(1), isolate(2), False, id="two kinds on brokers of their own"),
        pytest.param(kill(1), delay(1), False, id="one of them composes"),
        pytest.param(delay(1), delay(1), True, id="one that composes, but not with itself"),
        pytest.param(delay(1), delay(2), False, id="one that composes, on brokers of their own"),
        pytest.param(ZOOKEEPER, ZOOKEEPER, True, id="two of a kind that hit no broker"),
        pytest.param(ZOOKEEPER, kill(1), False, id="brokers and something else"),
    ],
)
def test_two_injections_exclude_each_other_or_not(one: Claim, other: Claim, excluded: bool) -> None:
    assert one.excludes(other) is excluded
    assert other.excludes(one) is excluded
