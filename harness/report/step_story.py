"""The illegal step that a finding is about: the state before it, and the rule that it breaks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from harness.report.evidence import RunEvidence
from harness.report.findings import Row
from harness.report.moments import SHOWN_CHARACTERS, Moment, as_json, broker, listed
from harness.values import ACKS_ALL

LONG = re.compile(rf"(\S{{{SHOWN_CHARACTERS}}})\S{{20,}}")
"""A value that is too long for a sentence, and what is shown of it."""
OFFSETS = ("last_offset", "offset", "new", "to_offset", "log_end_offset")
"""Fields of a broker's log that name an offset, the most precise one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step as a finding shows it."""

    fact: dict[str, Any]
    """Its row in the table `steps`."""
    event: dict[str, Any]
    """What the broker logged; empty if the step is no line of its log."""

    @property
    def offset(self) -> int | None:
        """The offset that it is about."""
        return next((self.event[name] for name in OFFSETS if isinstance(self.event.get(name), int)), None)

    @property
    def leader_epoch(self) -> int | None:
        """The leader epoch that it is about."""
        epoch = self.event.get("leader_epoch")
        return epoch if isinstance(epoch, int) else None

    @property
    def text(self) -> str:
        """What happened, in words."""
        return _describe(str(self.fact.get("step") or ""), self.event)


def illegal_step(finding: Row) -> Step | None:
    """Return the step in a finding's evidence."""
    for text in finding.get("evidence") or ():
        shown = as_json(text)
        if isinstance(shown, dict) and shown.get("fact") == "steps":
            return _step_of(shown)
    return None


def message_of(finding: Row) -> str:
    """Return what a finding says, with long values cut; of an illegal step the rule, and the step in words."""
    step = illegal_step(finding)
    if step is None or "sentence" not in step.fact:
        return LONG.sub(lambda found: f"{found[1]}…", str(finding["message"]))
    return f"{step.fact['sentence']} {broker(step.fact.get('broker')).capitalize()} broke it: {step.text}."


def of_steps(evidence: RunEvidence, finding: Row) -> Iterator[Moment]:
    """Yield the illegal step that a finding is about: the state before it, and the rule that it breaks."""
    step = illegal_step(finding)
    if step is None:
        return
    place = {name: step.fact.get(name) for name in ("broker", "incarnation", "seq", "rule")}
    for row in evidence.matching("steps", **place):
        if row["time_ns"] is not None:
            lane, subject = broker(row["broker"]), f"the {row['subject']} {row['name']}"
            yield Moment(at_ns=row["time_ns"], lane=lane, text=f"{subject} is {row['before']}")
            broken = f"{_step_of(row).text}, which breaks a rule: {row['sentence']} ({row['source']})"
            yield Moment(at_ns=row["time_ns"], lane=lane, text=broken, matters=True)


def _step_of(row: Row) -> Step:
    event = as_json(str(row.get("step") or ""))
    return Step(fact=row, event=event if isinstance(event, dict) and "ev" in event else {})


def _describe(text: str, event: dict[str, Any]) -> str:
    """Return what a broker logged, as words; its names and numbers are those of the log."""
    if not event:
        return text
    known = {name: value for name, value in event.items() if name not in ("ev", "line", "chain", "correlation_id")}
    if event["ev"] == "produce_resp" and event.get("acks") == ACKS_ALL and "high_watermark" in event:
        offsets = f"offset {known.get('last_offset')}"
        return f"acks=all is answered for {offsets} while the high watermark is {known['high_watermark']}"
    if event["ev"] == "hw" and {"old", "new", "isr", "zk_version"} <= event.keys():
        isr = f"ISR {listed(known['isr'])} of version {known['zk_version']}"
        return f"the high watermark goes from {known['old']} to {known['new']} with {isr}"
    if event["ev"] == "isr_propose" and {"old", "new"} <= event.keys():
        ends, start = known.get("ends"), known.get("epoch_start_offset")
        logs = f" while their logs are known to end at {listed(ends)} and its epoch starts at {start}" if ends else ""
        return f"it proposes ISR {listed(known['new'])} instead of {listed(known['old'])}{logs}"
    return f"{event['ev']} ({', '.join(f'{name}={value}' for name, value in known.items())})"
