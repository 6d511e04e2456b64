"""What an administrator makes of a transaction that fails."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest

from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.transport import PeerError
from harness.client_rules.steps import Failure
from harness.simulation.clients.administrator_transaction import AdministratorTransaction
from harness.simulation.clients.refusals import Refused
from harness.simulation.clients.transactional_requests import TransactionalRequests, TransactionError


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Refused, id="the topic is gone: the answer is known"),
        pytest.param(ErrorCode.COORDINATOR_NOT_AVAILABLE, PeerError, id="no coordinator has answered"),
    ],
)
async def test_a_write_that_was_tried_in_vain(code: ErrorCode, error: type[Exception]) -> None:
    client: Any = SimpleNamespace(timeout_s=1.0)
    request: Any = SimpleNamespace(topic="t", partition=0)
    fails = AsyncMock(side_effect=TransactionError(code, Failure.RETRIABLE))
    with (
        patch.object(TransactionalRequests, "init_producer_id", AsyncMock()),
        patch.object(TransactionalRequests, "add_partition", fails),
        pytest.raises(error),
    ):
        await AdministratorTransaction("id", client).write(request)
    fails.assert_awaited_once_with(("t", 0))
