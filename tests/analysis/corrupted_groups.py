"""Corruptions of consumer groups: a coordinator, or a member, logs what must not happen.

The model of a cluster has no groups with members, so that each corruption brings a group of its own, in coordinator
epochs of its own.
"""

from dataclasses import asdict, replace
from typing import Any

from harness.events import CoordinatorLoad, CoordinatorUnload, Event, GroupStateChange
from harness.store.history import OpKind, OpType
from tests.analysis.corrupted_brokers import say
from tests.analysis.group_lines import assigns, becomes, commits
from tests.analysis.model_cluster import OFFSETS, ORDERS
from tests.analysis.model_evidence import OPERATIONS, STATE_CHANGES, Evidence, Line, state_change_log

EPOCH = 90
MEMBER = "m1"
LONG_MS = 60_000


def _tell(run: Evidence, broker: int, *events: Event) -> bool:
    for event in events:
        say(run, broker, event.ev, **asdict(event))
    return True


def _stable(generation: int, *members: str, epoch: int = EPOCH) -> GroupStateChange:
    stable = becomes("Stable", generation, *members, epoch=epoch)
    return replace(stable, rebalance_timeout_ms=1, session_timeout_ms=1)


def _does(run: Evidence, kind: OpKind, index: int, *, offset: int = -1, **fields: Any) -> None:
    named = {"group": "g", "member": MEMBER, "generation": 1} | fields
    ended = {name: value for name, value in named.items() if name != "records"}
    run.operation(MEMBER, kind, OpType.INVOKE, index, **ended)
    run.operation(MEMBER, kind, OpType.OK, index, **named, offset=offset)


def assign_twice(run: Evidence) -> bool:
    return _tell(run, 1, assigns(1, epoch=EPOCH, a=[0], b=[0, 1]), _stable(1, "a", "b"))


def go_back(run: Evidence) -> bool:
    return _tell(run, 1, _stable(2, "a"), _stable(1, "a"))


def forget_group(run: Evidence) -> bool:
    _tell(run, 1, _stable(2, "a"))
    load = CoordinatorLoad(partition=0, leader_epoch=EPOCH + 1, groups=0, offsets=0, log_end_offset=9, disk_error="")
    return _tell(run, 2, load)


def forget_member(run: Evidence) -> bool:
    _tell(run, 1, assigns(2, epoch=EPOCH, a=[0], b=[1]), _stable(2, "a", "b"))
    loaded = replace(_stable(2, "a", epoch=EPOCH + 1), from_state="")
    return _tell(run, 2, assigns(2, reason="loaded", epoch=EPOCH + 1, a=[0]), loaded)


def commit_late(run: Evidence) -> bool:
    return _tell(run, 1, _stable(2, MEMBER)) and _commit(run, MEMBER, 1)


def commit_unassigned(run: Evidence) -> bool:
    return _tell(run, 1, replace(_stable(2, MEMBER), to_state="CompletingRebalance")) and _commit(run, MEMBER, 2)


def commit_as_nobody(run: Evidence) -> bool:
    return _tell(run, 1, _stable(2, "a")) and _commit(run, "b", 2)


def _commit(run: Evidence, member: str, generation: int) -> bool:
    """Have broker 1 take a commit, decided at its next line."""
    decided = run.files[STATE_CHANGES][state_change_log(1)][-1]["seq"] + 1
    return _tell(run, 1, commits(member, generation, decided=decided, offset=1, epoch=EPOCH))


def begin_low(run: Evidence) -> bool:
    _tell(run, 1, _stable(1, MEMBER))
    _commit(run, MEMBER, 1)
    _does(run, OpKind.ASSIGNED, 0, topic=ORDERS, partition=0, mode="eager")
    return True


def rebalance_for_long(run: Evidence) -> bool:
    _tell(run, 1, replace(_stable(1, "a"), to_state="PreparingRebalance"))
    run.tick(LONG_MS)
    _tell(run, 1, _stable(2, "a"))
    run.files[STATE_CHANGES][state_change_log(1)][-1]["mono"] = run.now_ns
    return True


def read_nothing(run: Evidence) -> bool:
    record = _somewhere_else(run)
    sent = run.lines(OPERATIONS, kind=OpKind.SEND, type=OpType.OK, topic=ORDERS, partition=0, acks=-1)
    if record is None or not any(sent):
        return False
    _tell(run, 1, assigns(1, epoch=EPOCH, m1=[0]), _stable(1, MEMBER))
    _does(run, OpKind.ASSIGNED, 0, topic=ORDERS, partition=0, mode="eager")
    run.tick(LONG_MS)
    _does(run, OpKind.POLL, 1, mode="subscribe", records=(record,))
    return True


def skip_while_owned(run: Evidence) -> bool:
    records = _in_a_row(run)
    return bool(records) and _reads(run, records[0], records[2])


def go_back_while_owned(run: Evidence) -> bool:
    records = _in_a_row(run)
    return bool(records) and _reads(run, *records[:2], records[0])


def _in_a_row(run: Evidence) -> list[Line]:
    """Return three records of a partition of orders without gap, as they were read; empty if none were."""
    polls = run.lines(OPERATIONS, kind=OpKind.POLL, type=OpType.OK)
    read = {record["offset"]: record for poll in polls for record in poll["records"] if _is_first(record)}
    return next(([read[at + step] for step in range(3)] for at in read if {at + 1, at + 2} <= read.keys()), [])


def _is_first(record: Line) -> bool:
    return bool(record["topic"] == ORDERS and record["partition"] == 0)


def _reads(run: Evidence, *records: Line) -> bool:
    """Have a member read these, a poll each, of the partition that it owns throughout."""
    _tell(run, 1, assigns(1, epoch=EPOCH, m1=[0]), _stable(1, MEMBER))
    _does(run, OpKind.ASSIGNED, 0, topic=ORDERS, partition=0, mode="eager", offset=records[0]["offset"])
    for index, record in enumerate(records, start=1):
        _does(run, OpKind.POLL, index, mode="subscribe", records=(record,))
    return True


def _somewhere_else(run: Evidence) -> Line | None:
    """Return a record that was read of another topic."""
    polls = run.lines(OPERATIONS, kind=OpKind.POLL, type=OpType.OK)
    records = (record for poll in polls for record in poll["records"])
    return next((record for record in records if record["topic"] != ORDERS), None)


def load_less(run: Evidence) -> bool:
    for claim in run.lines(STATE_CHANGES, ev="become_leader", topic=OFFSETS):
        last = run.files[STATE_CHANGES][state_change_log(claim["broker"])][-1]
        if claim["log_end_offset"] and claim["inc"] == last["inc"]:
            load = CoordinatorLoad(
                partition=claim["partition"],
                leader_epoch=claim["leader_epoch"],
                groups=0,
                offsets=0,
                log_end_offset=claim["log_end_offset"] - 1,
                disk_error="",
            )
            return _tell(run, claim["broker"], load)
    return False


def unload_late(run: Evidence) -> bool:
    load = CoordinatorLoad(partition=0, leader_epoch=EPOCH, groups=0, offsets=0, log_end_offset=9, disk_error="")
    return _tell(run, 1, load, CoordinatorUnload(partition=0, leader_epoch=EPOCH - 1, groups=0))
