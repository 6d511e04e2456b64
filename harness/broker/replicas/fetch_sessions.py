"""Fetch sessions (KIP-227): a client that fetches the same partitions repeatedly sends, and gets, only changes.

A session is created by a full fetch, and counts its requests from then on; one out of order is refused, and its sender
starts again. The rules are those of Kafka's `FetchSession` and `FetchManager`: a session belongs to no connection, and
is evicted for a more useful one.
"""

import logging
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.broker.replicas.fetching import PartitionFetch, Read
from harness.broker.rules import ProtocolRules
from harness.broker.wire.error_codes import ErrorCode
from harness.events import NO_OFFSET
from harness.values import TopicPartition

log = logging.getLogger(__name__)

NO_SESSION = 0
FIRST_EPOCH = 0
"""Of a full fetch that asks for a session …"""
FINAL_EPOCH = -1
"""… and of one that wants none, and ends the one that it names."""
EVICTION_S = 120.0
"""A session unused for this long is evicted for any other; a younger one is protected from its like."""

_LAST_ID = 2**31 - 1


class FetchSessionError(Exception):
    """A fetch does not fit the session that it names; `error` is its sender's answer."""

    def __init__(self, error: ErrorCode, session_id: int = NO_SESSION) -> None:
        super().__init__(error.name)
        self.error = error
        self.session_id = session_id


class FetchContext(Protocol):
    """One fetch in progress: the partitions to read, and which results are answered."""

    @property
    def partitions(self) -> Sequence[PartitionFetch]:
        """All partitions to read, in order."""
        ...

    def answer(self, reads: Sequence[Read]) -> tuple[int, Sequence[Read]]:
        """Return the session's id and the results to answer; raises FetchSessionError."""
        ...


@dataclass(frozen=True, slots=True)
class Sessionless:
    """A fetch without a session."""

    partitions: Sequence[PartitionFetch]

    def answer(self, reads: Sequence[Read]) -> tuple[int, Sequence[Read]]:
        """Answer everything."""
        return NO_SESSION, reads


@dataclass(slots=True, eq=False)
class _Cached:
    """One partition of a session: the request's fields, and what its sender knows already."""

    fetch: PartitionFetch
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET

    def is_news(self, read: Read) -> bool:
        """Whether a result is answered, and then counted as sent; an error is answered until it is over."""
        news = (
            bool(read.records)
            or read.high_watermark != self.high_watermark
            or read.log_start_offset != self.log_start_offset
            or read.error is not ErrorCode.NONE
            or read.diverging is not None
        )
        self.high_watermark = read.high_watermark if read.error is ErrorCode.NONE else NO_OFFSET
        self.log_start_offset = read.log_start_offset
        return news


@dataclass(slots=True, eq=False)
class FetchSession:
    """A session of one client or follower."""

    id: int
    privileged: bool
    """Whether it is a follower's."""
    created_s: float
    used_s: float
    epoch: int = FIRST_EPOCH + 1
    """Of the next request."""
    partitions: dict[TopicPartition, _Cached] = field(default_factory=dict)
    """In the order they are read: a partition that returned records is read last the next time."""

    def update(self, named: Sequence[PartitionFetch], forgotten: Collection[TopicPartition]) -> None:
        """Apply a request's changes."""
        for fetch in named:
            cached = self.partitions.get(fetch.key)
            if cached is None:
                self.partitions[fetch.key] = _Cached(fetch)
            else:
                cached.fetch = fetch
        for key in forgotten:
            self.partitions.pop(key, None)

    def is_worth_more_than(self, privileged: bool, size: int) -> bool:
        """Whether it is kept rather than evicted for another one: a follower's, or one of more partitions."""
        return (self.privileged, len(self.partitions), self.id) > (privileged, size, 0)


@dataclass(slots=True, eq=False)
class _FullFetch:
    """A fetch that names all its partitions and gets a session, if there is room."""

    partitions: Sequence[PartitionFetch]
    cache: "FetchSessions"
    privileged: bool

    def answer(self, reads: Sequence[Read]) -> tuple[int, Sequence[Read]]:
        """Answer everything, and store it."""
        session = self.cache.create(self.privileged, len(reads))
        if session is None:
            return NO_SESSION, reads
        for read in reads:
            session.partitions[read.fetch.key] = _Cached(read.fetch, read.high_watermark, read.log_start_offset)
        return session.id, reads


@dataclass(slots=True, eq=False)
class _IncrementalFetch:
    """A fetch with changes only."""

    partitions: Sequence[PartitionFetch]
    session: FetchSession
    epoch: int
    """Epoch of the session with this request."""

    def answer(self, reads: Sequence[Read]) -> tuple[int, Sequence[Read]]:
        """Answer changes; raises FetchSessionError when another request of the session came meanwhile."""
        if self.session.epoch != self.epoch:
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session.id)
        partitions = self.session.partitions
        news = [read for read in reads if partitions[read.fetch.key].is_news(read)]
        for read in news:
            if read.records:
                partitions[read.fetch.key] = partitions.pop(read.fetch.key)
        return self.session.id, news


@dataclass(slots=True, kw_only=True, eq=False)
class FetchSessions:
    """All sessions of a broker, at most `slots` of them (`max.incremental.fetch.session.cache.slots`)."""

    slots: int
    rng: random.Random
    now_s: Callable[[], float]
    rules: ProtocolRules
    evictions: int = 0
    _sessions: dict[int, FetchSession] = field(default_factory=dict)
    """In the order they were used."""

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        """How many partitions all sessions have."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def begin(
        self,
        session_id: int,
        epoch: int,
        named: Sequence[PartitionFetch],
        forgotten: Collection[TopicPartition] = (),
        *,
        privileged: bool,
    ) -> FetchContext:
        """Return the fetch of a request, given its session and epoch.

        Raises:
            FetchSessionError: there is no such session, or another request of it was expected.
        """
        if epoch == FINAL_EPOCH:
            self._sessions.pop(session_id, None)
            return Sessionless(named)
        if epoch == FIRST_EPOCH:
            self._sessions.pop(session_id, None)
            return _FullFetch(list({fetch.key: fetch for fetch in named}.values()), self, privileged)
        session = self._sessions.get(session_id)
        if session is None:
            raise FetchSessionError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if self.rules.fetch_session_epochs_are_checked and epoch != session.epoch:
            raise FetchSessionError(ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.update(named, forgotten)
        session.epoch = next_epoch(session.epoch)  # so that one that still waits finds itself overtaken
        if not session.partitions:
            del self._sessions[session_id]
            return Sessionless(named)
        self._touch(session)
        return _IncrementalFetch([each.fetch for each in session.partitions.values()], session, session.epoch)

    def create(self, privileged: bool, size: int) -> FetchSession | None:
        """Return a new session for so many partitions; None when all places are taken by better ones."""
        now_s = self.now_s()
        if len(self._sessions) >= self.slots and not self._evict(privileged, size, now_s):
            return None
        session_id = self.rng.randint(1, _LAST_ID)
        while session_id in self._sessions:
            session_id = self.rng.randint(1, _LAST_ID)
        session = self._sessions[session_id] = FetchSession(session_id, privileged, now_s, now_s)
        return session

    def _touch(self, session: FetchSession) -> None:
        session.used_s = self.now_s()
        del self._sessions[session.id]
        self._sessions[session.id] = session

    def _evict(self, privileged: bool, size: int, now_s: float) -> bool:
        """Make room by an unused session, or else by the least one that is worth less; return whether there was one.

        A session is protected for its first two minutes, except a client's from a follower's.
        """
        victim = next(iter(self._sessions.values()), None)
        if victim is None:
            return False
        if now_s - victim.used_s <= EVICTION_S:
            evictable = [
                each
                for each in self._sessions.values()
                if each.used_s - each.created_s > EVICTION_S or (privileged and not each.privileged)
            ]
            victim = min(evictable, key=lambda each: (each.privileged, len(each.partitions), each.id), default=None)
            if victim is None or victim.is_worth_more_than(privileged, size):
                return False
        log.debug("fetch_session.evicted id=%d partitions=%d", victim.id, len(victim.partitions))
        del self._sessions[victim.id]
        self.evictions += 1
        return True


def next_epoch(epoch: int) -> int:
    """Return the next epoch; after the last one they count from 1 again."""
    return 1 if epoch == _LAST_ID else epoch + 1
