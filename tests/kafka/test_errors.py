import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.kafka.errors import NETWORK_EXCEPTION, NO_ERROR, described

LAST = 90


@pytest.mark.parametrize("error", [error for error in ErrorCode if error <= LAST], ids=lambda error: error.name)
def test_an_error_has_the_name_that_the_broker_gives_it(error: ErrorCode) -> None:
    assert described(error) == error.name


@pytest.mark.parametrize(
    ("code", "name"),
    [
        pytest.param(NO_ERROR, "NONE", id="none"),
        pytest.param(NETWORK_EXCEPTION, "NETWORK_EXCEPTION", id="no answer"),
        pytest.param(30, "GROUP_AUTHORIZATION_FAILED", id="one that the broker does not have"),
        pytest.param(LAST + 1, "error 91", id="a later one"),
        pytest.param(-2, "error -2", id="none of Kafka's"),
    ],
)
def test_an_error_is_named_or_numbered(code: int, name: str) -> None:
    assert described(code) == name
