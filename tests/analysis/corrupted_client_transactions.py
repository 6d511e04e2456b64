"""Corruptions of what clients say of their transactions, and of what readers of them saw."""

from collections.abc import Iterator

from harness.store.history import OpKind, OpType
from tests.analysis.model_evidence import OPERATIONS, STATE_CHANGES, Evidence, Line
from tests.analysis.model_transactions import PIPELINE, PLAIN, process_of

READER = "reader of read_committed"
Transaction = tuple[str, int]
"""Process and number."""


def _ends(run: Evidence, kind: str, *ended: str) -> list[Line]:
    """Return the ends of commits or aborts, the last one first."""
    lines = [line for line in run.lines(OPERATIONS, kind=kind) if line["type"] in ended]
    return lines[::-1]


def _sends(run: Evidence, end: Line) -> list[Line]:
    """Return the acknowledged records of the transaction that a line ends."""
    return list(run.lines(OPERATIONS, kind="send", type="ok", process=end["process"], transaction=end["transaction"]))


def _polls(run: Evidence, partition: int) -> list[tuple[Line, Line]]:
    """Return the records of a partition that the reader got, in order, each after its poll."""
    polls = run.lines(OPERATIONS, kind="poll", type="ok", process=READER)
    return [(poll, each) for poll in polls for each in poll["records"] if each["partition"] == partition]


def _passed(run: Evidence, sent: Line) -> list[tuple[Line, Line]]:
    """Return where the reader got a record after another one of its partition, and before a later one."""
    polls = _polls(run, sent["partition"])
    return [each for each in polls[1:-1] if each[1]["value"] == sent["value"]]


def read_aborted(run: Evidence) -> bool:
    """The reader gets a record of an aborted transaction."""
    for end in _ends(run, "abort_transaction", "ok", "info"):
        for sent in _sends(run, end):
            before = [each for each in _polls(run, sent["partition"]) if each[1]["offset"] < sent["offset"]]
            if before:
                poll, record = before[-1]
                poll["records"].append(record | {"offset": sent["offset"], "value": sent["value"]})
                return True
    return False


def ask_late(run: Evidence) -> bool:
    """A client asks to commit what the reader has got already."""
    for end in _ends(run, "commit_transaction", "ok"):
        if any(_passed(run, sent) for sent in _sends(run, end)):
            latest = max(line["time_ns"] for line in run.lines(OPERATIONS))
            for line in run.lines(OPERATIONS, process=end["process"], index=end["index"]):
                line["time_ns"] = latest + (line["type"] == "ok")
            return True
    return False


def _miss(run: Evidence, *ended: str, of_several: bool) -> bool:
    for end in _ends(run, "commit_transaction", *ended):
        sends = _sends(run, end)
        for sent in sends if len(sends) > of_several else []:
            if passed := _passed(run, sent):
                poll, record = passed[0]
                poll["records"].remove(record)
                return True
    return False


def tear_read(run: Evidence) -> bool:
    """The reader misses one of several records of a transaction of which its client does not know."""
    return _miss(run, "info", of_several=True)


def miss_committed(run: Evidence) -> bool:
    """The reader misses the only record of a committed transaction."""
    return _miss(run, "ok", of_several=False)


def read_in_circle(run: Evidence) -> bool:
    """Two transactions are made of each other."""
    pair = [sends[0] for end in _ends(run, "commit_transaction", "ok") if (sends := _sends(run, end))][:2]
    pair = [sent for sent in pair if sent["process"] == process_of(PLAIN)]
    if len(pair) < 2:
        return False
    process = process_of(PLAIN)
    index = max(line["index"] for line in run.lines(OPERATIONS, process=process))
    for sent, other in (pair, pair[::-1]):
        index += 1
        for line in run.lines(OPERATIONS, process=process, index=sent["index"]):
            line["made_from"] = other["value"]
        record = {name: other[name] for name in ("topic", "partition", "offset", "value")} | {"leader_epoch": -1}
        read = {"mode": "assign", "isolation": "read_committed"}
        run.operation(process, OpKind.POLL, OpType.INVOKE, index, **read)
        run.operation(process, OpKind.POLL, OpType.OK, index, **read)
        next(run.lines(OPERATIONS, process=process, type="ok", index=index))["records"] = [record]
    return True


def end_otherwise(run: Evidence) -> bool:
    """A client aborted what is committed."""
    for end in _ends(run, "commit_transaction", "ok"):
        if any(_passed(run, sent) for sent in _sends(run, end)):
            for line in run.lines(OPERATIONS, process=end["process"], index=end["index"]):
                line["kind"] = "abort_transaction"
            return True
    return False


def make_twice(run: Evidence) -> bool:
    """The pipeline makes two records of one."""
    made = [sent for sent in _made(run) if sent["made_from"]]
    for sent in made[1:2]:
        for line in run.lines(OPERATIONS, process=sent["process"], index=sent["index"]):
            line["made_from"] = made[0]["made_from"]
    return len(made) > 1


def _made(run: Evidence) -> Iterator[Line]:
    for end in _ends(run, "commit_transaction", "ok"):
        yield from _sends(run, end) if end["process"] == process_of(PIPELINE) else []


def count_aborted(run: Evidence) -> bool:
    """The position that an aborted transaction was to commit is read back."""
    process = process_of(PIPELINE)
    of = {
        kind: {end["transaction"] for end in _ends(run, kind, "ok", "info")}
        for kind in ("commit_transaction", "abort_transaction")
    }
    positions = list(run.lines(OPERATIONS, kind="send_offsets", type="ok", process=process))
    committed = {line["offset"] for line in positions if line["transaction"] in of["commit_transaction"]}
    aborted = [line["offset"] for line in positions if line["transaction"] in of["abort_transaction"]]
    read = list(run.lines(OPERATIONS, kind="fetch_committed", type="ok", process=process))
    wrong = [offset for offset in aborted if offset not in committed]
    if not read or not wrong or any(run.lines(STATE_CHANGES, ev="election", unclean=True)):
        return False
    read[0]["offset"] = wrong[0]
    return True
