"""Tiny histories as facts, by the thousand: intact ones, in which things of every kind then go wrong.

Each is a run of its own in the same tables, so that one plan judges all. Rows are lists in the order of `COLUMNS`, and
a corruption changes them in place.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from harness.analysis.tables.arrow import columns_of
from harness.analysis.tables.schemas import TABLES
from harness.contracts.checks import Settings

Row = list[Any]

COLUMNS = {
    "sends": (
        *("process", "index", "topic", "partition", "value", "acks", "outcome", "offset", "leader_epoch"),
        *("invoke_ns", "complete_ns"),
    ),
    "polls": ("process", "index", "mode", "position", "topic", "partition", "offset", "value", "leader_epoch"),
    "replica_records": ("broker", "topic", "partition", "offset", "leader_epoch", "value", "digest"),
    "replicas": ("broker", "topic", "partition", "log_start_offset", "log_end_offset"),
    "partition_states": ("topic", "partition", "zxid", "leader", "leader_epoch", "isr"),
    "leader_epochs": ("topic", "partition", "leader_epoch", "leader", "start_offset", "unclean", "unclean_allowed"),
    "truncations": ("topic", "partition", "to_offset", "log_end_offset"),
}
VALUE, OFFSET = {"sends": 4, "polls": 7, "replica_records": 5}, {"sends": 7, "polls": 6, "replica_records": 3}
PARTITION = {"sends": 3, "polls": 5, "replica_records": 2}
OUTCOME, DIGEST, EPOCH_OF_RECORD = 6, 6, 4
BROKERS = (0, 1, 2)
READERS = (("c0", "assign"), ("c1", "subscribe"), ("c1", "reread"))


@dataclass
class History:
    """The rows of one run."""

    random: Random
    rows: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in COLUMNS})

    def any_of(self, name: str) -> Row | None:
        """Return some row of a table, None where there is none."""
        return self.random.choice(self.rows[name]) if self.rows[name] else None

    def some_table(self) -> str:
        """Return the name of a table of records."""
        return self.random.choice(("sends", "polls", "replica_records"))


def history(random: Random) -> History:
    """Return a run in which sources differ only by what is allowed: late readers, sends without an answer."""
    run = History(random)
    for topic, partition in (("t", 0), ("t", 1), ("u", 0))[: random.choice((1, 1, 2, 2, 3))]:
        _partition(run, topic, partition, random.choice((3, 10, 20, 30)))
    if random.random() < 0.3:
        _replicate(run, "__offsets", 0, [(offset, offset % 3, 0) for offset in range(random.randint(1, 20))])
    return run


def _partition(run: History, topic: str, partition: int, length: int) -> None:
    random = run.random
    epochs = sorted(random.sample(range(length), min(random.randint(0, 2), length)))
    gaps = 3 if random.random() < 0.15 else 1
    log, offset = [], random.choice((0, 0, 0, 7))
    for number in range(length):
        epoch = sum(start <= number for start in epochs)
        log.append((offset, f"{topic}{partition}-{number}", epoch))
        offset += random.randint(1, gaps)
    _replicate(run, topic, partition, log)
    answers = ((-1, "ok"), (1, "ok"), (0, "ok"), (-1, "info"))
    weights = random.choice(((1, 0, 0, 0), (1, 0, 0, 0), (8, 2, 0, 0), (90, 5, 2, 3)))
    for number, (at, value, epoch) in enumerate(log):
        acks, outcome = random.choices(answers, weights)[0]
        known = (at, epoch) if outcome == "ok" and acks else (None, None)
        instants = _instants(random, number)
        run.rows["sends"].append([f"p{number % 2}", number, topic, partition, value, acks, outcome, *known, *instants])
    for number in range(random.randint(0, 2)):
        refused = f"{topic}{partition}-refused-{number}"
        instants = _instants(random, number)
        run.rows["sends"].append(["p2", number, topic, partition, refused, -1, "fail", None, None, *instants])
    for process, mode in READERS[: random.choice((1, 2, 2, 2, 3))]:
        _read(run, process, mode, topic, partition, log[: length - random.choice((0, 0, 0, 1, 4))])


def _instants(random: Random, number: int) -> tuple[int, int | None]:
    """Return when a send began and ended; some wait for long, and some never end."""
    invoke_ns = number * 100_000_000
    return invoke_ns, random.choice((*(invoke_ns + 50_000_000,) * 8, invoke_ns + 700_000_000, None))


def _replicate(run: History, topic: str, partition: int, log: list[tuple[int, Any, int]]) -> None:
    random, end = run.random, log[-1][0] + 1
    isr = random.sample(BROKERS, random.choice((2, 3, 3)))
    for broker in BROKERS:
        cut = 0 if broker in isr else random.choice((0, 1, 3))
        for offset, value, epoch in log[: len(log) - cut]:
            digest = f"digest of {value}"
            run.rows["replica_records"].append([broker, topic, partition, offset, epoch, str(value), digest])
        last = log[len(log) - cut - 1][0] + 1 if cut < len(log) else 0
        run.rows["replicas"].append([broker, topic, partition, 0, end if not cut else last])
    for epoch in sorted({epoch for _, _, epoch in log}):
        start = next(offset for offset, _, each in log if each == epoch)
        unclean = random.random() < 0.1
        run.rows["leader_epochs"].append([topic, partition, epoch, isr[epoch % len(isr)], start, unclean, True])
        run.rows["partition_states"].append([topic, partition, epoch, isr[0], epoch, sorted(isr)])
    if random.random() < 0.1:
        run.rows["truncations"].append([topic, partition, random.randint(0, end), end])


def _read(run: History, process: str, mode: str, topic: str, partition: int, log: list[tuple[int, Any, int]]) -> None:
    index = len(run.rows["polls"])
    while log:
        size = run.random.randint(1, 8)
        for position, (offset, value, epoch) in enumerate(log[:size]):
            run.rows["polls"].append([process, index, mode, position, topic, partition, offset, value, epoch])
        log, index = log[size:], index + 1


def _drop(run: History) -> None:
    name = run.some_table()
    if run.rows[name]:
        run.rows[name].pop(run.random.randrange(len(run.rows[name])))


def _drop_everywhere(run: History) -> None:
    """A record is not read, or in no log, or both; it may be at the end of its partition."""
    row = run.any_of("polls")
    for name in ("polls", "replica_records") if row else ():
        if row and run.random.random() < 0.7:
            run.rows[name] = [each for each in run.rows[name] if each[VALUE[name]] != row[VALUE["polls"]]]


def _drop_range(run: History) -> None:
    """One reader or replica, or all readers, lack some records that follow each other."""
    name = run.random.choice(("polls", "replica_records"))
    row = run.any_of(name)
    if row is None:
        return
    first, last = row[OFFSET[name]] or 0, (row[OFFSET[name]] or 0) + run.random.randint(0, 14)
    everyone = run.random.random() < 0.3
    run.rows[name] = [
        each
        for each in run.rows[name]
        if each[PARTITION[name]] != row[PARTITION[name]]
        or (each[0] != row[0] and not everyone)
        or not first <= (each[OFFSET[name]] or 0) <= last
    ]


def _repeat(run: History) -> None:
    name = run.some_table()
    row = run.any_of(name)
    if row is not None:
        run.rows[name].append(list(row))


def _other_value(run: History) -> None:
    name, other = run.some_table(), run.any_of("sends")
    row = run.any_of(name)
    if row is not None:
        values = ("from nowhere", None, "", other[VALUE["sends"]] if other else "from nowhere")
        row[VALUE[name]] = run.random.choice(values)


def _other_value_for_all(run: History) -> None:
    """All readers, or all replicas, have another value at an offset than its producer."""
    name, other = run.random.choice(("polls", "replica_records")), run.any_of("sends")
    row = run.any_of(name)
    if row is None or other is None:
        return
    place = slice(PARTITION[name] - 1, OFFSET[name] + 1) if name == "polls" else slice(1, 4)
    value = run.random.choice(("from nowhere", other[VALUE["sends"]]))
    for each in run.rows[name]:
        if each[place] == row[place] and each is not row:
            each[VALUE[name]] = value
    row[VALUE[name]] = value


def _swap(run: History) -> None:
    """Two rows of a table change their values, or their offsets."""
    name = run.some_table()
    first, second = run.any_of(name), run.any_of(name)
    if first and second:
        at = run.random.choice((VALUE, OFFSET))[name]
        first[at], second[at] = second[at], first[at]


def _move(run: History) -> None:
    name = run.some_table()
    row = run.any_of(name)
    if row is not None:
        row[OFFSET[name]] = run.random.choice(
            (None, 0, 3, 64, 1000, (row[OFFSET[name]] or 0) + run.random.randint(-9, 9))
        )


def _move_partition(run: History) -> None:
    name = run.some_table()
    row = run.any_of(name)
    if row is not None:
        row[PARTITION[name]] = run.random.choice((0, 1, None))


def _read_again(run: History) -> None:
    """A value is read at another place too, by one reader or by all."""
    row = run.any_of("polls")
    other = run.any_of("polls")
    if row and other:
        for each in run.rows["polls"] if run.random.random() < 0.5 else [other]:
            if each[4:7] == other[4:7]:
                each[VALUE["polls"]] = row[VALUE["polls"]]


def _fail(run: History) -> None:
    """A producer learns something else of a send."""
    row = run.any_of("sends")
    if row is not None:
        row[OUTCOME] = run.random.choice(("fail", "info"))
        row[OFFSET["sends"]] = None


def _read_refused(run: History) -> None:
    refused = [row for row in run.rows["sends"] if row[OUTCOME] == "fail"]
    row = run.any_of("polls")
    if refused and row:
        row[VALUE["polls"]] = run.random.choice(refused)[VALUE["sends"]]


def _forget_sends(run: History) -> None:
    """Nothing was sent to a partition, or to a topic."""
    row = run.any_of("sends")
    if row is not None:
        keys = 4 if run.random.random() < 0.5 else 3
        run.rows["sends"] = [each for each in run.rows["sends"] if each[2:keys] != row[2:keys]]


def _other_copy(run: History) -> None:
    row = run.any_of("replica_records")
    if row is not None:
        if run.random.random() < 0.5:
            row[DIGEST] = run.random.choice(("other bytes", None))
        else:
            row[EPOCH_OF_RECORD] = run.random.choice((None, 0, 1, 9))


def _other_tail(run: History) -> None:
    """A replica has records of its own from an offset on."""
    row = run.any_of("replica_records")
    for each in run.rows["replica_records"] if row else ():
        if row and each[:3] == row[:3] and each[3] is not None and row[3] is not None and each[3] >= row[3]:
            each[4:] = [9, f"own {each[3]}", f"own {each[3]}"]


def _other_ends(run: History) -> None:
    row = run.any_of("replicas")
    if row is not None:
        row[run.random.choice((3, 4))] += run.random.randint(-6, 6)


def _forget_dump(run: History) -> None:
    row = run.any_of("replicas")
    if row is not None:
        run.rows["replicas"].remove(row)
        if run.random.random() < 0.5:
            run.rows["replica_records"] = [each for each in run.rows["replica_records"] if each[:3] != row[:3]]


def _turn_round(run: History) -> None:
    """A poll gives its records in another order."""
    row = run.any_of("polls")
    places = [each for each in run.rows["polls"] if row and each[:3] == row[:3]]
    run.random.shuffle(places)
    for position, each in enumerate(places):
        each[3] = position


CORRUPTIONS: tuple[Callable[[History], None], ...] = (
    _drop,
    _drop_everywhere,
    _drop_range,
    _repeat,
    _other_value,
    _other_value_for_all,
    _swap,
    _move,
    _move_partition,
    _read_again,
    _fail,
    _read_refused,
    _forget_sends,
    _other_copy,
    _other_tail,
    _other_ends,
    _forget_dump,
    _turn_round,
)


def corrupted(seed: int) -> History:
    """Return the history of a seed with up to three things wrong; one in eight is intact."""
    random = Random(seed)
    run = history(random)
    for corruption in random.choices(CORRUPTIONS, k=random.choice((0, 1, 1, 1, 1, 2, 2, 3))):
        corruption(run)
    return run


def tables(seeds: Iterable[int]) -> dict[str, pa.Table]:
    """Return the facts of the histories of these seeds, whose run ids they are; all others have no rows."""
    rows: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    for seed in seeds:
        for name, own in corrupted(seed).rows.items():
            rows[name] += [[str(seed), *row] for row in own]
    made = {}
    for name, columns in COLUMNS.items():
        schema = columns_of(TABLES[name])
        values = dict(zip(("run_id", *columns), zip(*rows[name], strict=True), strict=True)) if rows[name] else {}
        none = [None] * len(rows[name])
        made[name] = pa.table({each.name: pa.array(values.get(each.name, none), each.type) for each in schema})
    return made


def settings(seeds: Iterable[int]) -> dict[str, Settings]:
    """Return what each run was allowed to do: readers of every third may begin anywhere."""
    return {
        str(seed): Settings(
            acks=frozenset({-1, 0, 1}),
            min_insync_replicas=2,
            unclean_leader_election=True,
            idempotence=False,
            read_from_start=seed % 3 != 0,
        )
        for seed in seeds
    }
