"""The fetchers of a broker: one for each leader that it follows."""

import asyncio
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from harness.broker.background import reported
from harness.broker.replicas.fetcher import FetcherSettings, LeaderFetcher
from harness.broker.replicas.partition import Partition
from harness.values import TopicPartition


@dataclass(slots=True, eq=False)
class Fetchers:
    """The fetchers of a broker, one a leader."""

    settings: FetcherSettings
    _by_leader: dict[int, tuple[LeaderFetcher, asyncio.Task[None]]] = field(default_factory=dict)
    _stopping: set[asyncio.Task[None]] = field(default_factory=set)

    def follow(self, partitions: Iterable[Partition], as_they_are: Container[TopicPartition] = ()) -> None:
        """Start following partitions, each at its own leader; a planted bug takes some `as_they_are`."""
        by_leader: dict[int, list[Partition]] = {}
        for partition in partitions:
            by_leader.setdefault(partition.leader, []).append(partition)
        for leader_id, led in sorted(by_leader.items()):
            if leader_id not in self._by_leader:
                fetcher = LeaderFetcher(leader_id, self.settings)
                task = asyncio.create_task(fetcher.run(), name=f"fetcher-{leader_id}")
                task.add_done_callback(reported)
                self._by_leader[leader_id] = (fetcher, task)
            self._by_leader[leader_id][0].follow(led, as_they_are)

    def unfollow(self, keys: Iterable[TopicPartition]) -> None:
        """Stop following partitions, under any leader."""
        for key in keys:
            for fetcher, _ in self._by_leader.values():
                fetcher.unfollow(key)

    @property
    def leaders(self) -> list[int]:
        """The leaders that fetchers run for, in order."""
        return sorted(self._by_leader)

    @property
    def without_session(self) -> list[int]:
        """Those of them that answered the last full fetch without a session."""
        return sorted(leader_id for leader_id, (fetcher, _) in self._by_leader.items() if fetcher.has_no_session)

    @property
    def followed(self) -> list[tuple[int, TopicPartition]]:
        """The partitions that fetchers have, each with the leader of its fetcher, in order."""
        return sorted((leader_id, key) for leader_id, (fetcher, _) in self._by_leader.items() for key in fetcher.keys)

    def stop_idle(self) -> None:
        """End the fetchers without partitions."""
        for leader_id in [leader_id for leader_id, (fetcher, _) in self._by_leader.items() if not len(fetcher)]:
            _, task = self._by_leader.pop(leader_id)
            task.cancel()
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def stop(self) -> None:
        """End all fetchers."""
        tasks = [*self._stopping, *(task for _, task in self._by_leader.values())]
        self._by_leader.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
