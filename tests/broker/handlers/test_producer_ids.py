"""InitProducerId: ids, and final refusals."""

from collections.abc import Callable

import pytest

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.handlers.producer_ids import ProducerIdHandlers
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import InitProducerIdRequest
from harness.broker.zookeeper.registration import ensure_persistent_paths
from harness.broker.zookeeper.session import ZooKeeperSession
from tests.broker.transactions.coordinating import Coordinating


@pytest.mark.parametrize(
    ("version", "transactional_id", "had", "error"),
    [
        pytest.param(1, None, (-1, -1), ErrorCode.NONE, id="an idempotent producer"),
        pytest.param(3, None, (-1, -1), ErrorCode.NONE, id="one that had none before"),
        pytest.param(3, None, (7, 2), ErrorCode.NONE, id="one that had another before"),
        pytest.param(4, None, (7, -1), ErrorCode.INVALID_REQUEST, id="an id without its epoch"),
        pytest.param(4, None, (-1, 2), ErrorCode.INVALID_REQUEST, id="an epoch without its id"),
        pytest.param(4, "", (-1, -1), ErrorCode.INVALID_REQUEST, id="an empty transactional id"),
        pytest.param(4, "tx", (7, -1), ErrorCode.INVALID_REQUEST, id="half of what a transactional producer knew"),
        pytest.param(1, "tx", (-1, -1), ErrorCode.NOT_COORDINATOR, id="not its coordinator"),
    ],
)
async def test_init_producer_id(
    session: ZooKeeperSession,
    context: Callable[..., RequestContext],
    version: int,
    transactional_id: str | None,
    had: tuple[int, int],
    error: ErrorCode,
) -> None:
    await ensure_persistent_paths(session.current)
    handlers = ProducerIdHandlers(
        ProducerIds(broker_id=1, zookeeper=lambda: session.current), Coordinating().coordinator
    )
    sent = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=1000, producer_id=had[0], producer_epoch=had[1]
    )
    request = InitProducerIdRequest.decode(sent.encode(version=version), version=version)
    response = await handlers.init_producer_id(request, context(version))
    response.encode(version=version)
    assert response.error_code == error
    expected = (0, 0) if error is ErrorCode.NONE else (-1, -1)
    assert (response.producer_id, response.producer_epoch) == expected
