"""InitProducerId: what an idempotent producer asks for before its first record."""

import logging
from dataclasses import dataclass

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.wire.dispatch import RequestContext
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import InitProducerIdRequest, InitProducerIdResponse
from harness.broker.zookeeper.client import ZooKeeperError
from harness.broker.zookeeper.znodes import MalformedZnode

_log = logging.getLogger(__name__)

_FIRST_EPOCH = 0
_NONE = -1


@dataclass(slots=True)
class ProducerIdHandlers:
    """Serves producer ids; any broker does."""

    producer_ids: ProducerIds

    async def init_producer_id(self, request: InitProducerIdRequest, context: RequestContext) -> InitProducerIdResponse:
        """Return a fresh id, also to who names the one it had (KIP-360 goes on with that in transactions only).

        There are no transactions, and those who want them are told for good, not to try again.
        """
        if request.transactional_id is not None:
            final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            error = final if request.transactional_id else ErrorCode.INVALID_REQUEST
            return _refused(error)
        if (request.producer_id == _NONE) != (request.producer_epoch == _NONE):
            return _refused(ErrorCode.INVALID_REQUEST)
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
