"""Writes run folders as a real run leaves them: one leader change in the middle, nothing lost."""

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from harness.events import Event, encode
from harness.store.folder import RunFolder
from harness.store.history import JsonlWriter, Operation, OpKind, OpType, ZnodeChange, line_of
from harness.store.seal import UNCHAINED, seal
from harness.system.chain import all_chained
from tests.analysis.model_cluster import ORDERS
from tests.analysis.model_evidence import MS, UNREADABLE, WALL_AHEAD_NS, Evidence
from tests.analysis.model_run import Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEED = 6
"""One partition a topic; broker 3 is controller."""


@dataclass
class Clock:
    now_ns: int = 1_000 * MS

    def tick(self, ms: float = 1.0) -> int:
        self.now_ns += int(ms * MS)
        return self.now_ns


@dataclass
class RunWriter:
    """Low level: one method a kind of line."""

    folder: RunFolder
    clock: Clock = field(default_factory=Clock)
    zxid: int = 100
    _writers: dict[Path, JsonlWriter] = field(default_factory=dict)
    _seqs: dict[tuple[int, str], Any] = field(default_factory=dict)
    _versions: dict[str, int] = field(default_factory=dict)

    def writer(self, path: Path) -> JsonlWriter:
        if path not in self._writers:
            self._writers[path] = JsonlWriter(path)
        return self._writers[path]

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()

    def event(self, broker: int, event: Event, *, life: str = "", clock_ahead_ns: int = 0) -> None:
        seq = self._seqs.setdefault((broker, life), itertools.count())
        common = {
            "ts": self.clock.now_ns + WALL_AHEAD_NS + clock_ahead_ns,
            "mono": self.clock.now_ns,
            "seq": next(seq),
            "broker": broker,
            "inc": life or f"inc-{broker}",
            "session": f"0x10{broker}",
            "broker_epoch": 10 + broker,
        }
        path = self.folder.state_change_log(broker)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.writer(path).write(json.loads(encode(event, common)))

    def znode(self, path: str, data: str | None, *, multi: bool = False) -> None:
        """Create or set a znode, or delete it where there is no data; with `multi` together with the last change."""
        self.zxid += not multi
        type_ = "delete" if data is None else "set" if path in self._versions else "create"
        version = -1 if data is None else self._versions.get(path, -1) + 1
        if data is None:
            del self._versions[path]
        else:
            self._versions[path] = version
        self.writer(self.folder.zookeeper).write(
            ZnodeChange(
                zxid=self.zxid,
                time_ms=(self.clock.now_ns + WALL_AHEAD_NS) // MS,
                type=type_,
                path=path,
                data=data or "",
                version=version,
                session="0x101",
                ephemeral_owner="",
                source="observer",
            )
        )

    def operation(self, process: str, kind: OpKind, type_: OpType, index: int, **fields: Any) -> None:
        self.writer(self.folder.operations_of(process)).write(
            Operation(index=index, time_ns=self.clock.now_ns, process=process, type=type_, kind=kind, **fields)
        )

    def skip_seq(self, broker: int) -> None:
        """Lose one line of a broker."""
        next(self._seqs[broker, ""])

    def raw(self, path: Path, text: str) -> None:
        """Append whatever text, as a killed writer or a broken disk leaves it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(text)


def write_intact_run(root: Path) -> RunFolder:
    """Broker 1 leads, dies half-way, broker 2 takes over, broker 1 comes back; all is read and kept."""
    run = Run(Random(SEED), idempotent=False)
    cluster, (orders,) = run.cluster, (each for each in run.data if each.topic == ORDERS)

    def produce() -> None:
        for _ in range(2):
            run.produce("p0", orders, 5)
            for follower in cluster.followers(orders):
                cluster.fetch(orders, follower)

    produce()
    produce()
    cluster.kill(1)
    produce()
    cluster.restart(1)
    produce()
    for partition in cluster.partitions:
        cluster.expand(partition, 1)
    cluster.update_metadata()
    run.read("c0", orders, 1000)
    run.commit(orders)
    run.read_back(orders)
    run.ask_end(orders, "c0")
    cluster.dump()
    run.look(cluster.out.now_ns)
    for files in cluster.out.files.values():
        for file, lines in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_bytes(b"".join(map(line_of, lines)))
    return RunFolder(root)


Files = dict[str, dict[str, list[bytes]]]
"""Lines by kind of evidence and the file's place within the run folder."""


def lines_of(evidence: Evidence) -> Files:
    return {
        kind: {
            place: [b'{"half\n' if UNREADABLE in line else line_of(line) for line in lines]
            for place, lines in of_kind.items()
        }
        for kind, of_kind in evidence.files.items()
    }


def sealed_run(root: Path, run_id: str, files: Files) -> RunFolder:
    """Write the folder of a run as its cluster leaves it."""
    folder = RunFolder(root / run_id)
    for kind, of_kind in files.items():
        for place, lines in of_kind.items():
            path = folder.root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(lines if kind in UNCHAINED else all_chained(lines)))
    seal(folder)
    return folder


Rows = Callable[..., list[Any]]


def rows_of(spark: "SparkSession", root: Path, cases: Mapping[str, Callable[[RunWriter], None]]) -> Rows:
    """Write a run for each case, and return what gives the rows of a case's fact, perhaps in an order."""
    from harness.analysis.facts.build import built_facts
    from harness.analysis.sources.reading import read

    folders = []
    for name, write in cases.items():
        writer = RunWriter(RunFolder(root / name))
        write(writer)
        writer.close()
        folders.append(writer.folder)
    with built_facts(read(spark, folders, root / "rows"), root / "facts") as facts:
        table = {name: [row.asDict(recursive=True) for row in frame.collect()] for name, frame in facts.items()}

    def of(write: Callable[[RunWriter], None], fact: str, order: str = "") -> list[dict[str, Any]]:
        own = [row for row in table[fact] if row["run_id"] == write.__name__]
        return sorted(own, key=lambda row: row[order]) if order else own

    return of
