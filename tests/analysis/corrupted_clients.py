"""Corruptions of what clients saw."""

import json
from collections.abc import Iterator
from itertools import pairwise

from harness.store.history import OpKind, OpType
from tests.analysis.corrupted_replicas import Place, acknowledged, first_inside, held, polled, very_last
from tests.analysis.model_cluster import OFFSETS, ORDERS
from tests.analysis.model_evidence import OPERATIONS, REPLICAS, UNREADABLE, Evidence, Line


def _take_out(run: Evidence, place: Place) -> None:
    """Leave a record in no log and in no poll."""
    run.remove(REPLICAS, list(held(run, *place).values()))
    for poll, record in polled(run, *place):
        poll["records"].remove(record)


def lose(run: Evidence) -> bool:
    sent = first_inside(run)
    if sent is not None:
        _take_out(run, sent[1])
    return sent is not None


def lose_last(run: Evidence) -> bool:
    sent = very_last(run)
    if sent is not None:
        _take_out(run, sent[1])
    return sent is not None


def read_other(run: Evidence) -> bool:
    sent = first_inside(run)
    if sent is None:
        return False
    _, record = polled(run, *sent[1])[0]
    record["value"] = "from nowhere"
    return True


def read_twice(run: Evidence) -> bool:
    """Make every reader get a value also at the offset of a record that was not acknowledged."""
    unacknowledged = {line["value"] for line in run.lines(OPERATIONS, process="p2", kind="send", topic=ORDERS)}
    records = [
        record
        for poll in run.lines(OPERATIONS, kind="poll", type="ok")
        for record in poll["records"]
        if record["value"] in unacknowledged
    ]
    sent = first_inside(run)
    if sent is None or not records:
        return False
    for record in records:
        if record["value"] == records[-1]["value"] and record is not records[-1]:
            record["value"] = sent[0]["value"]
    records[-1]["value"] = sent[0]["value"]
    return True


def fail_send(run: Evidence) -> bool:
    sent = first_inside(run)
    if sent is not None:
        sent[0].update(type="fail", offset=-1)
    return sent is not None


def forget_send(run: Evidence) -> bool:
    sent = first_inside(run)
    if sent is not None:
        forgotten = sent[0]["index"]
        run.remove(OPERATIONS, list(run.lines(OPERATIONS, process="p0", index=forgotten)))
        for line in run.lines(OPERATIONS, process="p0"):
            line["index"] -= line["index"] > forgotten  # it was never asked for, so that no number is missing
    return sent is not None


def _polls(run: Evidence, records: int) -> Iterator[tuple[Line, Line]]:
    """Yield the first reader's polls of the kept topic with so many records, all read by others too, and the next."""
    polls = list(run.lines(OPERATIONS, process="c0", kind="poll", type="ok"))
    for partition in (0, 1):
        where = (ORDERS, partition)
        ours = [poll for poll in polls if (poll["records"][0]["topic"], poll["records"][0]["partition"]) == where]
        for poll, following in pairwise(ours):
            offsets = [record["offset"] for record in poll["records"]]
            if len(offsets) >= records and all(len(polled(run, partition, offset)) > 1 for offset in offsets):
                yield poll, following


def turn_round(run: Evidence) -> bool:
    poll, _ = next(_polls(run, 4), (None, None))
    if poll is not None:
        poll["records"][1:3] = poll["records"][2:0:-1]
    return poll is not None


def leave_out(run: Evidence) -> bool:
    poll, _ = next(_polls(run, 3), (None, None))
    if poll is not None:
        del poll["records"][1]
    return poll is not None


def miss_poll(run: Evidence) -> bool:
    for poll, _ in _polls(run, 1):
        if poll["records"][0]["offset"]:
            poll["records"] = []
            return True
    return False


def read_again(run: Evidence) -> bool:
    poll, following = next(_polls(run, 1), (None, None))
    if poll is not None and following is not None:
        following["records"].insert(0, poll["records"][-1])
    return poll is not None


def answer_otherwise(run: Evidence) -> bool:
    """Have a client play a script, one answer of which is not as recorded."""
    for type_, error in ((OpType.INVOKE, ""), (OpType.OK, "step 2, version 4: Fetch: error_code 0 ≠ 1")):
        run.operation("player", OpKind.ASK, type_, 0, mode="quick script 7", error=error)
    return True


def break_promise(run: Evidence) -> bool:
    """Have a request of a step answered otherwise than promised."""
    promised = '{"error_code": "INVALID_PRODUCER_EPOCH"}'
    for type_, error, value in ((OpType.INVOKE, "", ""), (OpType.OK, '{"error_code": 0}', "error_code is 0")):
        what = {"mode": "EndTxn 1 to broker 2", "key": promised, "error": error, "value": value}
        run.operation("steps", OpKind.REQUEST, type_, 0, **what)
    return True


def read_before_offset(run: Evidence) -> bool:
    """Have a client read from an offset on, and get the record before it too."""
    place = first_inside(run)
    if place is None:
        return False
    _, record = polled(run, *place[1])[0]
    offset = record["offset"]
    what = {"topic": record["topic"], "partition": record["partition"], "offset": offset + 1, "mode": "leader"}
    for type_, value in ((OpType.INVOKE, ""), (OpType.OK, f"{offset}={record['value']}")):
        run.operation("lister", OpKind.READ, type_, 0, value=value, **what)
    return True


def _batches(run: Evidence, partition: int) -> list[list[Line]]:
    """Return the first producer's acknowledged sends to a partition, those together that were under way together."""
    invoked = {line["index"]: line["time_ns"] for line in run.lines(OPERATIONS, process="p0", type="invoke")}
    batches: list[list[Line]] = []
    for line in (each for each in acknowledged(run) if each["partition"] == partition):
        if (
            batches
            and batches[-1][-1]["index"] + 1 == line["index"]
            and invoked[line["index"]] < batches[-1][0]["time_ns"]
        ):
            batches[-1].append(line)
        else:
            batches.append([line])
    return batches


def _swap(run: Evidence, partition: int, first: Line, second: Line) -> bool:
    """Swap the offsets of two sends, if a client read there."""
    offsets = first["offset"], second["offset"]
    if not all(polled(run, partition, offset) for offset in offsets):
        return False
    second["offset"], first["offset"] = offsets
    return True


def swap_in_batch(run: Evidence) -> bool:
    return any(
        _swap(run, partition, *batch[:2])
        for partition in (0, 1)
        for batch in _batches(run, partition)[:1]
        if len(batch) > 1
    )


def swap_batches(run: Evidence) -> bool:
    pairs = [
        (partition, first[0], second[0])
        for partition in (0, 1)
        for first, second in pairwise(_batches(run, partition))
        if len(first) == len(second) == 1
    ]
    return bool(pairs) and _swap(run, *pairs[0])


def _last_commit(run: Evidence) -> tuple[Line, list[Line]] | None:
    """Return the last commit of the kept topic and all lines of it and of the read-backs that came after it."""
    commits = list(run.lines(OPERATIONS, kind="commit", type="ok", topic=ORDERS, partition=0))
    if not commits:
        return None
    last = commits[-1]
    same = {"topic": ORDERS, "partition": 0, "process": last["process"]}
    fetches = run.lines(OPERATIONS, kind="fetch_committed", type="ok", **same)
    after = [line for line in fetches if line["index"] > last["index"]]
    return last, [*run.lines(OPERATIONS, kind="commit", index=last["index"], **same), *after]


def lower_read_back(run: Evidence) -> bool:
    commit = _last_commit(run)
    if commit is None:
        return False
    commit[1][-1]["offset"] = 0
    return str(commit[1][-1]["kind"]) == "fetch_committed"


def commit_far(run: Evidence) -> bool:
    commit = _last_commit(run)
    for line in commit[1] if commit else ():
        line["offset"] = 1_000_000
    return commit is not None


def lose_commit(run: Evidence) -> bool:
    commit = _last_commit(run)
    if commit is None:
        return False
    records = [
        line
        for line in run.lines(REPLICAS, type="record", topic=OFFSETS)
        if json.loads(line["key"])["topic"] == ORDERS
        and json.loads(line["key"])["partition"] == 0
        and json.loads(line["value"])["offset"] == commit[0]["offset"]
    ]
    run.remove(REPLICAS, records)
    return bool(records)


def lower_end(run: Evidence) -> bool:
    written = {line["partition"] for line in acknowledged(run)}
    answers = [
        line
        for line in run.lines(OPERATIONS, kind="end_offset", type="ok", topic=ORDERS)
        if line["partition"] in written
    ]
    if answers:
        answers[-1]["offset"] = 0
    return bool(answers)


def never_end(run: Evidence) -> bool:
    """Of a client that lives: at the end of the run it sends once more."""
    end = next(run.lines(OPERATIONS, process="p2", kind="send", type="ok"), None)
    if end is None:
        return False
    run.remove(OPERATIONS, [end])
    index = max(line["index"] for line in run.lines(OPERATIONS, process="p2")) + 1
    later = {name: end[name] for name in ("topic", "partition", "acks")}
    for type_, more in ((OpType.INVOKE, {"key": "k"}), (OpType.FAIL, {"error": "refused"})):
        run.operation("p2", OpKind.SEND, type_, index, **later, **more, value=f"p2-{index}")
    return True


def tear_line(run: Evidence) -> bool:
    line = next(run.lines(OPERATIONS, process="c1", kind="poll", type="invoke"), None)
    if line is not None:
        line[UNREADABLE] = True
    return line is not None


def send_twice(run: Evidence) -> bool:
    refused = next(run.lines(OPERATIONS, kind="send", type="fail"), None)
    if refused is None:
        return False
    process, index = refused["process"], refused["index"]
    (invoked,) = run.lines(OPERATIONS, process=process, index=index, type="invoke")
    invoked["value"] = next(run.lines(OPERATIONS, kind="send", type="ok"))["value"]
    return True
