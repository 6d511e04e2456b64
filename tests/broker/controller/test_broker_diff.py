import pytest

from harness.broker.controller.broker_diff import BrokerDiff, diff_brokers


@pytest.mark.parametrize(
    ("known", "now", "expected"),
    [
        pytest.param({1: 10, 2: 20}, {1: 10, 2: 20}, BrokerDiff(), id="nothing"),
        pytest.param({}, {2: 20, 1: 10}, BrokerDiff(new=(1, 2)), id="brokers came"),
        pytest.param({2: 20, 1: 10}, {}, BrokerDiff(dead=(1, 2)), id="brokers went"),
        pytest.param({1: 10}, {1: 11}, BrokerDiff(bounced=(1,)), id="a broker registered anew"),
        pytest.param({1: 10}, {1: 9}, BrokerDiff(), id="an older registration is no news"),
        pytest.param(
            {1: 10, 2: 20, 3: 30},
            {1: 40, 2: 20, 4: 41},
            BrokerDiff(new=(4,), dead=(3,), bounced=(1,)),
            id="all at once",
        ),
    ],
)
def test_what_changed(known: dict[int, int], now: dict[int, int], expected: BrokerDiff) -> None:
    assert diff_brokers(known, now) == expected
