"""InitProducerId, which a producer with an id sends before its first record."""

import logging
from dataclasses import dataclass

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.transactions.coordinator import TransactionCoordinator
from harness.broker.transactions.transaction import Producer
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import InitProducerIdRequest, InitProducerIdResponse
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.znodes import MalformedZnode

_log = logging.getLogger(__name__)

_FIRST_EPOCH = 0
_FIRST_VERSION_WITH_FENCED = 4
_NONE = -1


@dataclass(slots=True)
class ProducerIdHandlers:
    """Serves producer ids: any broker to idempotent producers, coordinators to transactional ones."""

    producer_ids: ProducerIds
    transactions: TransactionCoordinator

    async def init_producer_id(self, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
        """Return a new id to an idempotent producer, also to one that names its earlier id.

        A transactional producer gets its coordinator's answer (KIP-360).
        """
        named = (request.producer_id, request.producer_epoch)
        if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
            return _refused(ErrorCode.INVALID_REQUEST)
        if request.transactional_id is not None:
            expected = None if named == (_NONE, _NONE) else Producer(*named)
            error, producer = await self.transactions.init_producer_id(
                request.transactional_id, request.transaction_timeout_ms, expected
            )
            if error is ErrorCode.PRODUCER_FENCED and context.api_version < _FIRST_VERSION_WITH_FENCED:
                error = ErrorCode.INVALID_PRODUCER_EPOCH
            return InitProducerIdResponse(
                throttle_time_ms=0,
                error_code=error,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
            )
        try:
            producer_id = await self.producer_ids.next_id()
        except (ZooKeeperError, MalformedZnode) as error:
            _log.warning("init_producer_id.failed client=%s error=%r", context.client_id, error)
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return InitProducerIdResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=_FIRST_EPOCH
        )


def _refused(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time_ms=0, error_code=error, producer_id=_NONE, producer_epoch=_NONE)
