"""The story of one finding: what clients, controller, ZooKeeper and each replica did to the record, in order.

Made from facts alone, without Spark. Instants are for reading; the order between two machines comes from epochs,
offsets and zxids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.progress import number_of
from harness.report.causes import Cause, causes_of, worth_telling
from harness.report.evidence import RunEvidence
from harness.report.findings import Row
from harness.report.moments import (
    CLIENTS,
    CONTROLLER,
    COORDINATOR,
    ZOOKEEPER,
    Moment,
    brief,
    broker,
    listed,
)
from harness.report.removal_story import in_transaction, of_removals
from harness.report.step_story import of_steps
from harness.report.transaction_story import of_transaction
from harness.values import ACKS_ALL

SHOWN_MOMENTS = 40
"""Of one story: those that matter, and those around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shade:
    """A fault in force."""

    lanes: list[str]
    from_ns: int
    to_ns: int | None
    """None if it was never healed."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """The events that lead to a finding."""

    finding: Row
    moments: list[Moment]
    """In order."""
    left_out: int
    """Number of less important moments."""
    shades: list[Shade]
    cause: list[str]
    """What lost the records, and the faults at that time, as sentences without their full stops."""
    sights: list[tuple[Row, str]]
    """The first violation of each check with this cause, and how many there are; the told one first."""

    @property
    def place(self) -> str:
        """What the story is about."""
        row = self.finding
        parts = [f"{row['topic']}-{row['partition']}"] if row["partition"] is not None else [row["topic"] or ""]
        parts += [f"offset {row['offset']}"] if row["offset"] is not None else []
        parts += (
            [f"leader epoch {row['leader_epoch']}"] if row["offset"] is None and row["leader_epoch"] is not None else []
        )
        return ", ".join(filter(None, parts)) or "the cluster"

    @property
    def lanes(self) -> list[str]:
        """The participants: clients, the coordinator, the controller, ZooKeeper, then the brokers by their ids."""
        named = {moment.lane for moment in self.moments}
        first = [lane for lane in (CLIENTS, COORDINATOR, CONTROLLER, ZOOKEEPER) if lane in named]
        return first + sorted(named - set(first), key=lambda lane: (len(lane), lane))

    def cells(self, moment: Moment) -> list[str]:
        """Return what each lane shows beside a moment, as classes of a page: `here` and `fault`, or neither."""
        hit = {
            lane
            for shade in self.shades
            if shade.from_ns <= moment.at_ns and (shade.to_ns is None or moment.at_ns <= shade.to_ns)
            for lane in shade.lanes
        }
        return [
            " ".join(name for name, shown in (("here", lane == moment.lane), ("fault", lane in hit)) if shown)
            for lane in self.lanes
        ]

    @property
    def sentence(self) -> str:
        """The moments that matter, in a sentence."""
        return "; ".join(moment.text for moment in self.moments if moment.matters)


def stories_of(evidence: RunEvidence) -> list[Story]:
    """Return one story a cause, losses first."""
    return [story_of(evidence, cause.told, cause) for cause in worth_telling(causes_of(evidence))]


def story_of(evidence: RunEvidence, finding: Row, cause: Cause | None = None) -> Story:
    """Return the story of a finding, at most `SHOWN_MOMENTS` long, and its cause if that is known."""
    shades = list(_shades(evidence))
    moments = [*_of_controllers(evidence), *of_steps(evidence, finding), *of_transaction(evidence, finding)]
    if finding["topic"] is not None and finding["partition"] is not None:
        moments += _Partition(evidence, finding).moments()
    moments += _of_faults(shades, [moment.at_ns for moment in moments if moment.matters])
    moments.sort(key=lambda moment: moment.at_ns)
    shown = _shown(moments)
    return Story(
        finding=finding,
        moments=shown,
        left_out=len(moments) - len(shown),
        shades=shades,
        cause=_sentences(evidence, cause, shades) if cause else [],
        sights=cause.sights if cause else [],
    )


def _shown(moments: Sequence[Moment]) -> list[Moment]:
    """Return those that matter, and the nearest others around the first and the last of them."""
    important = [index for index, moment in enumerate(moments) if moment.matters] or [max(len(moments) - 1, 0)]

    def distance(index: int) -> int:
        return min(abs(index - other) for other in (important[0], important[-1]))

    indexes = sorted(range(len(moments)), key=lambda index: (not moments[index].matters, distance(index)))
    return [moments[index] for index in sorted(indexes[:SHOWN_MOMENTS])]


def _shades(evidence: RunEvidence) -> Iterator[Shade]:
    for row in evidence.rows("fault_windows", "intended_ns"):
        if row["injected_ns"] is not None:
            targets = row["targets"] or []
            lanes = [broker(target) if target.isdecimal() else CLIENTS for target in targets]
            names = ", ".join(broker(target) if target.isdecimal() else target for target in targets)
            text = f"{row['fault']} {names}".strip()
            from_ns = row["intended_ns"] or row["injected_ns"]  # the effect begins before it is noted
            yield Shade(lanes=lanes, from_ns=from_ns, to_ns=row["healed_ns"], text=text)


def _sentences(evidence: RunEvidence, cause: Cause, shades: Sequence[Shade]) -> list[str]:
    """Return each change of leader that lost records, and the faults between the told record and the first of them.

    If none was in force then, the last one before is named.
    """
    if not cause.losses:
        return []
    until_ns = min(loss.time_ns for loss in cause.losses)
    since_ns = min(cause.told.get("at_ns") or until_ns, until_ns)
    begun = [shade for shade in shades if shade.from_ns <= until_ns]
    in_force = [shade for shade in begun if shade.to_ns is None or since_ns <= shade.to_ns]
    named = ", ".join(f"{shade.text} ({_times(evidence, shade)})" for shade in in_force or begun[-1:])
    faults = f"{'faults in force' if in_force else 'the last fault before'}: {named}"
    return [*(loss.text for loss in cause.losses), *([faults] if named else [])]


def _times(evidence: RunEvidence, shade: Shade) -> str:
    """Return from when to when a fault was in force, in seconds of the run."""
    from_s, to_s = evidence.seconds_since_start(shade.from_ns), evidence.seconds_since_start(shade.to_ns)
    return f"{from_s:.1f} s to {'the end' if to_s is None else f'{to_s:.1f} s'}"


def _of_faults(shades: Sequence[Shade], told_ns: Sequence[int]) -> Iterator[Moment]:
    """Yield the faults; the last one before each of some instants matters, and those in force then.

    The end of the run is no such instant.
    """
    told = sorted(told_ns)[:-1]
    last = {max((shade.from_ns for shade in shades if shade.from_ns <= at), default=0) for at in told}
    for shade in shades:
        lane = shade.lanes[0] if shade.lanes else CONTROLLER
        in_force = any(shade.from_ns <= at and (shade.to_ns is None or at <= shade.to_ns) for at in told)
        matters = in_force or shade.from_ns in last
        yield Moment(at_ns=shade.from_ns, lane=lane, text=f"fault: {shade.text}", matters=matters)
        if shade.to_ns is not None:
            yield Moment(at_ns=shade.to_ns, lane=lane, text=f"healed: {shade.text}")


def _of_controllers(evidence: RunEvidence) -> Iterator[Moment]:
    known = set()
    for row in evidence.rows("controller_epochs", "controller_epoch"):
        reign = (row["controller_epoch"], row["broker"])
        if row["time_ns"] is not None and row["broker"] is not None and reign not in known:
            known.add(reign)
            text = f"{broker(row['broker'])} is controller in epoch {row['controller_epoch']}"
            yield Moment(at_ns=row["time_ns"], lane=CONTROLLER, text=text)


class _Partition:
    """The history of a finding's partition, and of its record if it names one."""

    def __init__(self, evidence: RunEvidence, finding: Row) -> None:
        self._evidence = evidence
        self._place = {"topic": finding["topic"], "partition": finding["partition"]}
        self._offset: int | None = finding["offset"]
        self._claimed = self._timed("leadership_claims")
        self._epoch: int | None = finding["leader_epoch"]
        """The finding's epoch; for a record, the first in which a leader began without it."""
        if self._offset is not None:
            self._epoch = self._first_epoch_without(self._offset)

    def moments(self) -> Iterator[Moment]:
        """Yield all, in no order."""
        yield from self._elections()
        yield from self._isr_changes()
        yield from self._claims()
        yield from self._truncations()
        if self._offset is not None:
            yield from self._sends(self._offset)
            yield from self._polls(self._offset)
            yield from self._high_watermarks(self._offset)
            yield from of_removals(self._evidence, self._place, self._offset)
            yield from self._at_the_end(self._offset)

    def _rows(self, name: str, **more: Any) -> list[Row]:
        return self._evidence.matching(name, **self._place, **more)

    def _timed(self, name: str) -> list[Row]:
        """Return the rows with a known instant."""
        return [row for row in self._rows(name) if row["time_ns"] is not None]

    def _first_epoch_without(self, offset: int) -> int | None:
        """Return the first epoch, later than that of the record at an offset, whose leader's log ended before it."""
        copies = [row["leader_epoch"] for row in self._rows("replica_records", offset=offset)]
        copies += [epoch for row in self._rows("sends", offset=offset) for epoch, _ in self._leaders_of(row)]
        since = min((epoch for epoch in copies if epoch is not None), default=0)
        later = (row for row in self._claimed if row["role"] == "leader" and row["leader_epoch"] > since)
        ends = (row for row in later if row["log_end_offset"] is not None and row["log_end_offset"] <= offset)
        return min((row["leader_epoch"] for row in ends), default=None)

    def _elections(self) -> Iterator[Moment]:
        for row in self._timed("leader_epochs"):
            leads = "no replica leads" if row["leader"] < 0 else f"{broker(row['leader'])} is elected"
            how = ", though it was outside the ISR" if row["unclean"] else ""
            text = f"{leads} in epoch {row['leader_epoch']}{how} (ISR {listed(row['isr'])})"
            yield Moment(at_ns=row["time_ns"], lane=ZOOKEEPER, text=text, matters=row["leader_epoch"] == self._epoch)

    def _isr_changes(self) -> Iterator[Moment]:
        for row in self._timed("isr_changes"):
            if row["old_isr"]:
                by = f", written by the {row['writer']}" if row["writer"] else ""
                text = f"ISR {listed(row['old_isr'])} becomes {listed(row['new_isr'])}{by}"
                yield Moment(at_ns=row["time_ns"], lane=ZOOKEEPER, text=text)

    def _claims(self) -> Iterator[Moment]:
        for row in self._claimed:
            end = row["log_end_offset"]
            does = "leads" if row["role"] == "leader" else f"follows {broker(row['leader'])}"
            text = f"{broker(row['broker'])} {does} in epoch {row['leader_epoch']}"
            text += "" if end is None else f", its log ends at {end}"
            matters = row["role"] == "leader" and row["leader_epoch"] == self._epoch
            yield Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text, matters=matters)

    def _truncations(self) -> Iterator[Moment]:
        for row in self._timed("truncations"):
            ends = row["to_offset"], row["log_end_offset"]
            cut = self._offset is not None and None not in ends and ends[0] <= self._offset < ends[1]
            text = f"{broker(row['broker'])} truncates its log from {row['log_end_offset']} to {row['to_offset']}"
            reason = f" (reason: {row['reason']}, in leader epoch {row['leader_epoch']})"
            yield Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text + reason, matters=cut)

    def _sends(self, offset: int) -> Iterator[Moment]:
        for row in self._rows("sends", offset=offset):
            record = f"{row['process']}'s record {brief(row['value'])}"
            yield Moment(at_ns=row["invoke_ns"], lane=CLIENTS, text=f"{record} is sent")
            if row["complete_ns"] is not None:
                acks = "all" if row["acks"] == -1 else row["acks"]
                text = f"{record} is acknowledged{self._by(row)} at offset {offset} (acks={acks})"
                text += in_transaction(row)
                yield Moment(at_ns=row["complete_ns"], lane=CLIENTS, text=text, matters=True)
                if row["acks"] == ACKS_ALL and (only := self._only_with(offset, row["complete_ns"])):
                    yield Moment(at_ns=row["complete_ns"], lane=CLIENTS, text=only, matters=True)

    def _leaders_of(self, send: Row) -> list[tuple[int | None, int | None]]:
        """Return epoch and broker of each leader that may have acknowledged a record.

        It wrote the offset, and no replica holds another record of its epoch there; one whose record is held did it.
        """
        offset = send["offset"]
        held = {row["leader_epoch"]: row["value"] for row in self._rows("replica_records", offset=offset)}
        written = {
            (row["leader_epoch"], row["broker"])
            for row in self._rows("appends", role="leader")
            if _within(offset, row["first_offset"], row["last_offset"])
        }
        able: list[tuple[int | None, int | None]] = [
            each for each in sorted(written) if held.get(each[0], send["value"]) == send["value"]
        ]
        return [each for each in able if each[0] in held] or able or [(send["leader_epoch"], None)]

    def _by(self, send: Row) -> str:
        """Return which leader acknowledged a record, and how large its ISR was; empty if the evidence is undecided."""
        (epoch, broker_id), *others = self._leaders_of(send)
        if others or epoch is None:
            return ""
        if broker_id is None:
            return f" by the leader of epoch {epoch}"
        answers = self._rows("acknowledgements", broker=broker_id, leader_epoch=epoch, acks=send["acks"])
        sizes = {row["isr_size"] for row in answers if _within(send["offset"], row["first_offset"], row["offset"])}
        size = sizes.pop() if len(sizes) == 1 else None
        isr = "" if size is None else f", with {number_of(size, 'replica')} in its ISR"
        return f" by {broker(broker_id)}, leader of epoch {epoch}{isr},"

    def _only_with(self, offset: int, at_ns: int) -> str:
        """Return which brokers had the record when it was acknowledged; empty if the evidence does not decide it.

        A log that ends at or before the offset later, and was not truncated in between, did not have the record.
        """
        ends = [row for row in self._claimed if row["time_ns"] > at_ns and row["log_end_offset"] is not None]
        cuts = [row for row in self._timed("truncations") if row["time_ns"] > at_ns and row["to_offset"] <= offset]
        first = {row["broker"]: row for row in sorted(ends, key=lambda row: -row["time_ns"])}
        had = {row["broker"] for row in cuts if row["log_end_offset"] is not None and row["log_end_offset"] > offset}
        lacked = {
            broker_id
            for broker_id, row in first.items()
            if row["log_end_offset"] <= offset
            and not any(cut["broker"] == broker_id and cut["time_ns"] <= row["time_ns"] for cut in cuts)
        }
        had |= {broker_id for broker_id, row in first.items() if row["log_end_offset"] > offset} - lacked
        had -= lacked
        if not had or not lacked or had | lacked != {row["broker"] for row in self._rows("replicas")}:
            return ""
        others = ", ".join(f"{broker(one)} at {first[one]['log_end_offset']}" for one in sorted(lacked))
        only = ", ".join(map(broker, sorted(had)))
        return f"only {only} had the record when it was acknowledged: the logs of the others ended before it ({others})"

    def _polls(self, offset: int) -> Iterator[Moment]:
        seen: set[str] = set()
        for row in sorted(self._rows("polls", offset=offset), key=lambda row: row["time_ns"]):
            new = row["value"] not in seen
            seen.add(row["value"])
            text = f"{row['process']} reads {brief(row['value'])} at offset {offset}"
            yield Moment(at_ns=row["time_ns"], lane=CLIENTS, text=text, matters=new)

    def _high_watermarks(self, offset: int) -> Iterator[Moment]:
        for row in self._timed("high_watermarks"):
            old, new = row["old"], row["new"]
            if old is None or new is None or not min(old, new) <= offset < max(old, new):
                continue
            moves = "passes" if new > old else "falls behind"
            text = f"the high watermark of {broker(row['broker'])} {moves} offset {offset}: {old} to {new}"
            yield Moment(at_ns=row["time_ns"], lane=broker(row["broker"]), text=text, matters=new < old)

    def _at_the_end(self, offset: int) -> Iterator[Moment]:
        """Yield what each replica has at that offset after the run; replicas with the same content share a moment."""
        records = {row["broker"]: row for row in self._rows("replica_records", offset=offset)}
        replicas = self._rows("replicas")
        held: dict[str, list[int]] = {}
        for row in replicas:
            record = records.get(row["broker"])
            if record:
                what = f"{brief(record['value'])} of epoch {record['leader_epoch']}"
            elif row["log_start_offset"] is not None and offset < row["log_start_offset"]:
                continue
            else:
                what = "nothing"
            held.setdefault(what, []).append(row["broker"])
        for what, brokers in held.items():
            text = (
                f"at the end {', '.join(map(broker, sorted(brokers)))} {'has' if len(brokers) == 1 else 'have'} {what}"
            )
            at = f"{text} at offset {offset}"
            yield Moment(at_ns=self._evidence.last_ns, lane=broker(min(brokers)), text=at, matters=True)


def _within(offset: int, first: int | None, last: int | None) -> bool:
    """Return whether an offset is in a range; never in one of which an end is unknown."""
    return first is not None and last is not None and first <= offset <= last
