"""The follower's side of replication: truncate by the leader's epochs, then fetch, in a loop.

One task a leader (`num.replica.fetchers` is 1), one connection, all partitions of that leader in one fetch. A leader
that cannot be reached costs a pause (`replica.fetch.backoff.ms`), never the task. The steps are those of Kafka's
`AbstractFetcherThread`; where Kafka looks at a new partition only when the running long poll is over, the poll is cut
short here.
"""

import asyncio
import logging
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field

from harness.broker.configs.config import BrokerConfig
from harness.broker.log.epoch_cache import UNDEFINED_EPOCH, EpochEnd
from harness.broker.log.validation import InvalidRecords
from harness.broker.metadata_cache import MetadataCache
from harness.broker.replicas import fetcher_messages as messages
from harness.broker.replicas.counters import Counters
from harness.broker.replicas.fetcher_messages import PartitionRequest
from harness.broker.replicas.fetcher_session import FetcherSession
from harness.broker.replicas.partition import Partition, TruncationCause
from harness.broker.replicas.replicas import now_s
from harness.broker.replicas.replication import NEVER_S, Truncation, truncation_after, truncation_without_epochs
from harness.broker.rules import ProtocolRules
from harness.broker.unexpected import failed, is_unexpected
from harness.broker.wire.error_codes import ErrorCode
from harness.broker.wire.sentinels import EARLIEST, LATEST
from harness.broker.wire.transport import Connection, Message, PeerError, Transport
from harness.values import TopicPartition

log = logging.getLogger(__name__)

_SESSION_ERRORS = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetcherSettings:
    """What all fetchers of a broker share."""

    broker_id: int
    config: BrokerConfig
    metadata: MetadataCache
    transport: Transport
    rules: ProtocolRules
    counters: Counters
    committed: Callable[[TopicPartition], object]
    """Called when the high watermark of a followed partition has moved, for waiting consumers."""

    def seconds(self, name: str) -> float:
        """Return a property that is in milliseconds."""
        return float(self.config[name]) / 1000


@dataclass(slots=True, eq=False)
class Following:
    """One partition followed in one leader epoch; another epoch has another object."""

    partition: Partition
    leader_epoch: int
    truncating: bool
    retry_at_s: float = NEVER_S


@dataclass(slots=True, eq=False)
class LeaderFetcher:
    """Replicates from one leader."""

    leader_id: int
    settings: FetcherSettings
    _followed: dict[TopicPartition, Following] = field(default_factory=dict)
    _connection: Connection | None = None
    _session: FetcherSession = field(default_factory=FetcherSession)
    _polling: bool = False
    _interrupted: bool = False
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __len__(self) -> int:
        """How many partitions are followed; failed ones do not count."""
        return len(self._followed)

    @property
    def keys(self) -> Iterable[TopicPartition]:
        """The partitions that are followed."""
        return self._followed.keys()

    def follow(self, partitions: Iterable[Partition], as_they_are: Container[TopicPartition]) -> None:
        """Start following partitions in their current leader epoch, most of them with truncation first."""
        for partition in partitions:
            self._followed[partition.key] = Following(
                partition=partition,
                leader_epoch=partition.leader_epoch,
                truncating=self.settings.rules.truncate_by_leader_epoch and partition.key not in as_they_are,
            )
        self._wake.set()
        if self._polling and self._connection is not None:
            self._interrupted = True
            self._disconnect()

    def unfollow(self, key: TopicPartition) -> None:
        """Stop following a partition; a pending answer for it will be ignored."""
        self._followed.pop(key, None)

    async def run(self) -> None:
        """Replicate until cancelled."""
        try:
            while True:
                try:
                    await self._round()
                except PeerError as error:
                    self._disconnect()
                    if self._interrupted:
                        continue
                    log.info("fetcher.round failed leader=%d error=%s", self.leader_id, error)
                    await self._pause(self.settings.seconds("replica.fetch.backoff.ms"))
                except Exception as error:  # noqa: BLE001  replication must go on, whatever this was
                    failed(log, error, "fetcher.round failed leader=%d", self.leader_id)
                    self._disconnect()
                    await self._pause(self.settings.seconds("replica.fetch.backoff.ms"))
                finally:
                    self._interrupted = False
        finally:
            self._disconnect()

    @property
    def has_no_session(self) -> bool:
        """Whether the leader answered the last full fetch without a session."""
        return self._session.is_denied

    async def _round(self) -> None:
        connection = self._connection or await self._connect()
        now = now_s()
        ready = [following for _, following in sorted(self._followed.items()) if following.retry_at_s <= now]
        truncating = [following for following in ready if following.truncating]
        if truncating:
            await self._truncate(connection, truncating)
        elif ready:
            await self._fetch(connection, ready)
        else:
            await self._pause(self._next_retry_s() - now)

    async def _connect(self) -> Connection:
        settings = self.settings
        endpoint = settings.metadata.leader_endpoint(self.leader_id, settings.config.peer_listener)
        if endpoint is None:
            raise PeerError(f"broker {self.leader_id} is not alive")
        host, port = endpoint
        client_id = f"broker-{settings.broker_id}-fetcher-0"
        timeout_s = settings.seconds("replica.socket.timeout.ms")
        self._connection = await settings.transport.connect(host, port, client_id=client_id, timeout_s=timeout_s)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._session.lost()

    async def _pause(self, seconds: float) -> None:
        """Wait, but not when there is something new to follow."""
        self._wake.clear()
        timer = asyncio.get_running_loop().call_later(seconds, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    def _next_retry_s(self) -> float:
        """Return when the next delayed partition is due; without any, at most one fetch wait from now."""
        idle_s = now_s() + self.settings.seconds("replica.fetch.wait.max.ms")
        return min((following.retry_at_s for following in self._followed.values()), default=idle_s)

    async def _request(self, connection: Connection, request: Message, version: int) -> Message:
        timeout_s = self.settings.seconds("replica.socket.timeout.ms")
        return await connection.request(request, version, timeout_s=timeout_s)

    # --- truncation ---

    async def _truncate(self, connection: Connection, truncating: list[Following]) -> None:
        """Take the next step of every truncating partition; those without epochs need not ask."""
        partitions = []
        for following in truncating:
            asks = self.settings.rules.truncation_asks_the_leader
            epoch = following.partition.log.epochs.latest_epoch if asks else UNDEFINED_EPOCH
            if epoch == UNDEFINED_EPOCH:
                step = truncation_without_epochs(following.partition.high_watermark)
                self._apply(following, step, TruncationCause(reason=step.reason))
            else:
                partitions.append(PartitionRequest(following.partition.key, following.leader_epoch, epoch))
        if not partitions:
            return
        before = {following.partition.key: following for following in truncating}
        request = messages.offset_for_leader_epoch_request(self.settings.broker_id, partitions)
        response = await self._request(connection, request, messages.OFFSET_FOR_LEADER_EPOCH_VERSION)
        epochs = {each.key: each.value for each in partitions}
        for topic in response.topics:
            for answer in topic.partitions:
                key = (topic.topic, answer.partition)
                followed = before.get(key)
                if followed is None or self._followed.get(key) is not followed:
                    continue
                if self._usable(followed, answer.error_code):
                    self._answered(followed, epochs[key], EpochEnd(answer.leader_epoch, answer.end_offset))

    def _answered(self, following: Following, requested_epoch: int, answer: EpochEnd) -> None:
        partition = following.partition
        compares = self.settings.rules.truncation_compares_epochs
        local_end = partition.end_of_epoch(answer.epoch) if compares else answer
        step = truncation_after(answer, local_end, partition.log.log_end_offset, partition.high_watermark)
        cause = TruncationCause(
            reason=step.reason,
            requested_epoch=requested_epoch,
            answer_epoch=answer.epoch,
            answer_end_offset=answer.end_offset,
        )
        self._apply(following, step, cause)

    def _apply(self, following: Following, step: Truncation, cause: TruncationCause) -> None:
        partition = following.partition
        if step.to < partition.high_watermark:
            log.warning(
                "fetcher.truncate below high watermark partition=%s-%d to=%d high_watermark=%d",
                *partition.key,
                step.to,
                partition.high_watermark,
            )
        try:
            partition.truncate(step.to, cause)
        except Exception as error:  # noqa: BLE001  logged; costs this partition only (`AbstractFetcherThread`)
            self._fail(following, f"truncation failed: {error}", error)
        else:
            following.truncating = not step.done

    # --- fetching ---

    def _limits(self, wait_s: float) -> messages.Limits:
        config = self.settings.config
        return messages.Limits(
            int(wait_s * 1000),
            config["replica.fetch.min.bytes"],
            config["replica.fetch.response.max.bytes"],
            config["replica.fetch.max.bytes"],
        )

    async def _fetch(self, connection: Connection, ready: list[Following]) -> None:
        """Fetch once for all partitions and append what came."""
        partitions = [_next_records(following) for following in ready]
        before = {following.partition.key: following for following in ready}
        wait_s = self.settings.seconds("replica.fetch.wait.max.ms")
        if len(ready) < len(self._followed):
            wait_s = max(0.0, min(wait_s, self._next_delayed_s() - now_s()))
        request = messages.fetch_request(
            self.settings.broker_id,
            self._limits(wait_s),
            self._session.next(partitions),
        )
        self._polling = True
        try:
            response = await self._request(connection, request, messages.FETCH_VERSION)
        finally:
            self._polling = False
        if response.error_code in _SESSION_ERRORS:
            log.info("fetcher.session refused leader=%d error=%d", self.leader_id, response.error_code)
            self._session.refused(response.error_code)
            return
        if response.error_code != ErrorCode.NONE:
            raise PeerError(f"fetch refused with error {response.error_code}")
        answers = {
            (each.topic, answer.partition_index): answer for each in response.responses for answer in each.partitions
        }
        if not self._session.answered(response.session_id, answers.keys()):
            log.warning("fetcher.session failed leader=%d: not the partitions that were asked for", self.leader_id)
            return
        out_of_range = []
        for key, answer in answers.items():
            followed = before.get(key)
            if followed is None or self._followed.get(key) is not followed:
                continue
            if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                out_of_range.append(followed)
            elif self._usable(followed, answer.error_code):
                self._append(followed, answer)
        for following in out_of_range:
            await self._find_offset(connection, following)

    def _next_delayed_s(self) -> float:
        now = now_s()
        return min((f.retry_at_s for f in self._followed.values() if f.retry_at_s > now), default=now)

    def _append(self, following: Following, answer: Message) -> None:
        partition = following.partition
        try:
            if answer.records:
                partition.append_as_follower(answer.records)
                self.settings.counters.replication_bytes_in += len(answer.records)
            takes_over = self.settings.rules.followers_take_high_watermarks
            moved = takes_over and partition.follow_high_watermark(answer.high_watermark)
            if self.settings.rules.followers_take_log_starts:
                partition.follow_log_start(answer.log_start_offset)
            if moved:
                self.settings.committed(partition.key)
        except InvalidRecords as error:
            log.warning("fetcher.append corrupt partition=%s-%d error=%s", *partition.key, error)
            self._delay(following)
        except Exception as error:  # noqa: BLE001  logged; costs this partition only (`AbstractFetcherThread`)
            self._fail(following, str(error), error)

    async def _find_offset(self, connection: Connection, following: Following) -> None:
        """Move a log without overlap with the leader's back into the leader's range."""
        partition = following.partition
        latest = await self._list_offset(connection, following, LATEST)
        if latest is None:
            return
        try:
            if latest < partition.log.log_end_offset:
                log.warning("fetcher.truncate beyond leader partition=%s-%d to=%d", *partition.key, latest)
                partition.truncate(latest, TruncationCause(reason="out_of_range", answer_end_offset=latest))
                return
            earliest = await self._list_offset(connection, following, EARLIEST)
            if earliest is not None and earliest > partition.log.log_end_offset:
                partition.restart_at(earliest)
        except OSError as error:
            self._fail(following, f"truncation failed: {error}", error)

    async def _list_offset(self, connection: Connection, following: Following, timestamp: int) -> int | None:
        """Return the leader's latest or earliest offset; None on an error, or when it is not followed any more."""
        key = following.partition.key
        request = messages.list_offsets_request(
            self.settings.broker_id, PartitionRequest(key, following.leader_epoch, timestamp)
        )
        response = await self._request(connection, request, messages.LIST_OFFSETS_VERSION)
        answer = response.topics[0].partitions[0]
        if self._followed.get(key) is not following or not self._usable(following, answer.error_code):
            return None
        offset: int = answer.offset
        return offset

    # --- what goes wrong with one partition ---

    def _usable(self, following: Following, error_code: int) -> bool:
        """Whether an answer is usable; a leader that is ahead or behind in epochs determines the next step."""
        if error_code == ErrorCode.NONE:
            return True
        if error_code == ErrorCode.FENCED_LEADER_EPOCH:
            self._fail(following, f"leader epoch {following.leader_epoch} is over")
        else:
            log.info(
                "fetcher.answer refused partition=%s-%d leader=%d error=%d",
                *following.partition.key,
                self.leader_id,
                error_code,
            )
            self._delay(following)
        return False

    def _delay(self, following: Following) -> None:
        following.retry_at_s = now_s() + self.settings.seconds("replica.fetch.backoff.ms")

    def _fail(self, following: Following, why: str, error: Exception | None = None) -> None:
        """Stop following a partition until the controller sends its next leader epoch; the leader's others continue."""
        if error is not None and is_unexpected(error):
            failed(log, error, "fetcher.partition failed partition=%s-%d why=%s", *following.partition.key, why)
        else:
            log.warning("fetcher.partition failed partition=%s-%d why=%s", *following.partition.key, why)
        self._followed.pop(following.partition.key, None)


def _next_records(following: Following) -> PartitionRequest:
    log = following.partition.log
    return PartitionRequest(following.partition.key, following.leader_epoch, log.log_end_offset, log.log_start_offset)
