"""Asks the controller to move this broker's leaders away before it stops, so that clients hardly notice.

The request is repeated a few times: the controller may be changing, or have no other replica in sync at the moment. A
broker that cannot hand over stops anyway (`KafkaServer.controlledShutdown`).
"""

import asyncio
import logging
from dataclasses import dataclass

from harness.broker.configs.config import BrokerConfig
from harness.broker.state_log import StateLog
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.messages import ControlledShutdownRequest
from harness.broker.wire.transport import PeerError, Transport
from harness.broker.zookeeper.client import NoNode, ZooKeeperError
from harness.broker.zookeeper.registration import read_live_broker
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import CONTROLLER, ControllerZnode, MalformedZnode
from harness.events import LeaveRequest

_log = logging.getLogger(__name__)

VERSION = 3


class _NotDone(Exception):
    """One try failed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlledShutdown:
    """The broker's side of a controlled shutdown."""

    config: BrokerConfig
    session: ZooKeeperSession
    transport: Transport
    state_log: StateLog

    async def run(self, broker_epoch: int) -> bool:
        """Ask until this broker leads nothing, and return whether that was reached."""
        for tries_left in reversed(range(self.config["controlled.shutdown.max.retries"])):
            self.state_log.emit(LeaveRequest(tries_left=tries_left))
            try:
                await self._ask(broker_epoch)
            except (_NotDone, PeerError, ZooKeeperError, MalformedZnode, TimeoutError) as error:
                _log.warning("controlled_shutdown.retry reason=%r tries_left=%d", error, tries_left)
            else:
                _log.info("controlled_shutdown.complete")
                return True
            if tries_left:
                await asyncio.sleep(self.config["controlled.shutdown.retry.backoff.ms"] / 1000)
        _log.warning("controlled_shutdown.given_up; stopping with leads")
        return False

    async def _ask(self, broker_epoch: int) -> None:
        timeout_s = self.config["controller.socket.timeout.ms"] / 1000
        async with asyncio.timeout(timeout_s):
            host, port = await self._controller_address()
        connection = await self.transport.connect(host, port, client_id=str(self.config.broker_id), timeout_s=timeout_s)
        try:
            response = await connection.request(
                ControlledShutdownRequest(broker_id=self.config.broker_id, broker_epoch=broker_epoch),
                VERSION,
                timeout_s=timeout_s,
            )
        finally:
            connection.close()
        if response.error_code != ErrorCode.NONE:
            raise _NotDone(f"the controller answered {ErrorCode(response.error_code).name}")
        if response.remaining_partitions:
            remaining = [f"{left.topic_name}-{left.partition_index}" for left in response.remaining_partitions]
            raise _NotDone(f"still led here: {', '.join(remaining)}")

    async def _controller_address(self) -> tuple[str, int]:
        zk = self.session.current
        try:
            data, _ = await zk.get(CONTROLLER)
        except NoNode:
            raise _NotDone("there is no controller") from None
        controller_id = ControllerZnode.decode(data).broker_id
        broker = await read_live_broker(zk, controller_id)
        endpoint = broker and broker.registration.endpoint(self.config.peer_listener)
        if not endpoint:
            raise _NotDone(f"controller {controller_id} cannot be reached by the listener for brokers")
        return endpoint.host, endpoint.port
