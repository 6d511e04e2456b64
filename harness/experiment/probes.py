"""Steady state: every partition has a leader and its full assignment in the ISR, and every client makes progress."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from harness.store.history import OpKind, OpType, without_link
from harness.system.tail import end_of_lines, whole_lines
from harness.system.waiting import until
from harness.values import TopicPartition
from harness.zookeeper.view import ClusterView, PartitionView

LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class ClientProgress:
    """What the clients have achieved since the probe began; subclasses read it."""

    moved: set[str] = field(default_factory=set)
    """Processes with an operation that ended ok."""
    tried: set[TopicPartition] = field(default_factory=set)
    """Partitions that got a send."""
    acknowledged: set[TopicPartition] = field(default_factory=set)
    """Partitions with an acknowledged record that was sent since."""
    sent: Counter[str] = field(default_factory=Counter)
    """Acknowledged records of each process."""
    alive: set[str] = field(default_factory=set)
    """Processes with any operation."""
    read: dict[tuple[str, str, int], int] = field(default_factory=dict)
    """The last offset that a process has read of a partition."""
    _started: dict[str, set[int]] = field(default_factory=dict)
    """Of each process, the sends that began since."""

    def look(self) -> None:
        """Read what was written since the last look."""
        raise NotImplementedError

    def take(
        self,
        process: str,
        index: int,
        kind: str,
        type_: str,
        partition: TopicPartition,
        records: Iterable[tuple[str, int, int]],
    ) -> None:
        """Take one line of a process's operations; of its records topic, partition and offset."""
        self.alive.add(process)
        for topic, number, offset in records:
            self.read[process, topic, number] = offset
        started = self._started.setdefault(process, set())
        if kind == OpKind.SEND and type_ == OpType.INVOKE:
            started.add(index)
            self.tried.add(partition)
        elif type_ == OpType.OK:
            self.moved.add(process)
            self.sent[process] += kind == OpKind.SEND
            if kind == OpKind.SEND and index in started:
                self.acknowledged.add(partition)


@dataclass(slots=True)
class FileProgress(ClientProgress):
    """Progress by the operations files of a folder, as these grow."""

    folder: Path = Path()
    offsets: dict[Path, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.offsets = {path: end_of_lines(path) for path in self.folder.glob("*.jsonl")}

    def look(self) -> None:
        """Read what was written since the last look."""
        for path in sorted(self.folder.glob("*.jsonl")):
            position = self.offsets.get(path, 0)
            lines = whole_lines(path, position)
            self.offsets[path] = position + len(lines)
            for text in lines.splitlines():
                if not (line := without_link(json.loads(text))):
                    continue
                partition = (line["topic"], line["partition"])
                records = ((each["topic"], each["partition"], each["offset"]) for each in line.get("records", ()))
                self.take(path.stem, line["index"], line["kind"], line["type"], partition, records)


async def steady_state(
    view: ClusterView,
    topics: Mapping[str, int],
    processes: list[str],
    progress: ClientProgress,
    *,
    timeout_s: float,
) -> None:
    """Return when the cluster is complete and every client has made progress, as seen by `progress`.

    `topics` maps the run's topics to their number of partitions; internal topics must be complete too.

    Raises:
        DeadlineError: says what is missing.
    """

    async def missing() -> list[str]:
        progress.look()
        return not_whole(await _partitions_that_stay(view), topics) + not_moving(progress, topics, processes)

    await until(missing, lambda seen: not seen, what="steady state", timeout_s=timeout_s, every_s=LOOK_EVERY_S)


async def _partitions_that_stay(view: ClusterView) -> list[PartitionView]:
    """Return all partitions except incomplete ones of topics that wait for their deletion.

    A deletion may wait for a reassignment that cannot end: no leader is elected for a topic that is to be deleted
    (Kafka's `PartitionStateMachine.triggerOnlinePartitionStateChange`).
    """
    return [each for each in await view.partitions() if _is_whole(each) or not await view.deleting(each.topic)]


def _is_whole(view: PartitionView) -> bool:
    return view.leader >= 0 and set(view.isr) == set(view.assignment)


def not_whole(partitions: list[PartitionView], topics: Mapping[str, int]) -> list[str]:
    """Return a sentence for each partition that is missing, without a leader, or short of replicas in the ISR."""
    known = {(view.topic, view.partition) for view in partitions}
    problems = [
        f"{topic}-{partition} has no state"
        for topic, count in topics.items()
        for partition in range(count)
        if (topic, partition) not in known
    ]
    for view in partitions:
        name = f"{view.topic}-{view.partition}"
        if view.leader < 0:
            problems.append(f"{name} has no leader")
        elif set(view.isr) != set(view.assignment):
            problems.append(f"{name} has the ISR {list(view.isr)} of {list(view.assignment)}")
    return problems


def not_moving(progress: ClientProgress, topics: Mapping[str, int], processes: list[str]) -> list[str]:
    """Return a sentence for each client and partition without progress."""
    idle = [f"client {process} has completed nothing" for process in processes if process not in progress.moved]
    everywhere = [(topic, partition) for topic, count in topics.items() for partition in range(count)]
    silent = [each for each in everywhere if each not in progress.acknowledged] if progress.tried else []
    return idle + [f"{topic}-{partition} has acknowledged nothing new" for topic, partition in silent]
