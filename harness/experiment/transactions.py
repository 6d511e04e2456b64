"""Transactions of a cluster, their states and coordinators, as text for a person."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import DescribeTransactionsRequest, ListTransactionsRequest, MetadataRequest
from harness.broker.wire.tcp import TcpTransport
from harness.broker.wire.transport import Message, PeerError
from harness.errors import ClusterError

_TIMEOUT_S = 10.0
_METADATA_VERSION = 1
_CLIENT_ID = "harness"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionView:
    """One transactional id."""

    transactional_id: str
    state: str
    coordinator: int
    """Broker id."""
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: int | None
    """Wall clock of the coordinator when the transaction began; None before the first."""
    partitions: tuple[str, ...]
    """Those without a marker yet, as topic-partition."""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON types."""
        return asdict(self)


def transactions_of(bootstrap_servers: str) -> list[TransactionView]:
    """Return all transactional ids of a cluster, sorted.

    Raises:
        ClusterError: no broker answers, or a live broker does not list its transactions.
    """
    return asyncio.run(_transactions_of(bootstrap_servers))


async def _transactions_of(bootstrap_servers: str) -> list[TransactionView]:
    problems = []
    for address in bootstrap_servers.split(","):
        try:
            metadata = await _ask(address, MetadataRequest(topics=[]), _METADATA_VERSION)
        except PeerError as error:
            problems.append(str(error))
            continue
        views = [await _of_broker(each.node_id, f"{each.host}:{each.port}") for each in metadata.brokers]
        return sorted((view for of_broker in views for view in of_broker), key=lambda each: each.transactional_id)
    raise ClusterError(f"the cluster does not list its brokers: {'; '.join(problems)}")


async def _of_broker(broker_id: int, address: str) -> list[TransactionView]:
    try:
        listed = await _ask(address, ListTransactionsRequest(state_filters=[], producer_id_filters=[]), 0)
        if listed.error_code:
            raise ClusterError(f"broker {broker_id} does not list its transactions: {described(listed.error_code)}")
        names = [each.transactional_id for each in listed.transaction_states]
        answer = await _ask(address, DescribeTransactionsRequest(transactional_ids=names), 0)
    except PeerError as error:
        raise ClusterError(f"broker {broker_id} does not list its transactions: {error}") from error
    states = [each for each in answer.transaction_states if each.error_code == ErrorCode.NONE]
    return [
        TransactionView(
            transactional_id=each.transactional_id,
            state=each.transaction_state,
            coordinator=broker_id,
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            timeout_ms=each.transaction_timeout_ms,
            started_ms=None if each.transaction_start_time_ms < 0 else each.transaction_start_time_ms,
            partitions=tuple(f"{topic.topic}-{number}" for topic in each.topics for number in topic.partitions),
        )
        for each in states
    ]


async def _ask(address: str, message: Message, version: int) -> Message:
    host, _, port = address.strip().rpartition(":")
    connection = await TcpTransport().connect(host, int(port), client_id=_CLIENT_ID, timeout_s=_TIMEOUT_S)
    try:
        return await connection.request(message, version, timeout_s=_TIMEOUT_S)
    finally:
        connection.close()


def lines_of(transactions: Sequence[TransactionView]) -> list[str]:
    """Return the transactions as text for a person."""
    return [
        f"{each.transactional_id}  {each.state}  coordinator {each.coordinator}"
        f"  producer {each.producer_id} epoch {each.producer_epoch}  {' '.join(each.partitions)}".rstrip()
        for each in transactions
    ]
