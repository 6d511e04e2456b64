"""When may the log of a leader refuse a batch of an idempotent producer?

The log of a partition is followed as it grows: the epoch of each producer, and the last sequence number that it has
written in that epoch. What a log held when its broker started, and what a truncation leaves, is not known.
"""

from typing import Any

from msgspec import Struct

from harness.model.step import Event, Illegal, Key, Rule, Subject

OUT_OF_ORDER, OLD_EPOCH = 45, 47
"""Kafka's numbers of OUT_OF_ORDER_SEQUENCE_NUMBER and INVALID_PRODUCER_EPOCH."""
SEQUENCES = 2**31
NO_SEQUENCE = -1


class Written(Struct, kw_only=True):
    """What one producer has written last; mutable, as every batch changes it."""

    epoch: int
    last_sequence: int | None = None
    """None for a producer that has only had a marker written in this epoch."""
    verifying: bool = False
    """Whether the coordinator was asked about it since; a retry may have come meanwhile (KIP-890)."""


class Producers(Struct, kw_only=True):
    """The producers of one partition on one broker, by their ids."""

    written: dict[int, Written]


FOLLOWS = Rule(
    id="producer.follows",
    sentence="A batch that continues a producer's sequence, or begins it in a newer epoch with 0, is in order.",
    source="KIP-98, ProducerAppendInfo.checkSequence",
)
CURRENT = Rule(
    id="producer.current",
    sentence="Only a batch of an older epoch than the producer's last one is refused for its epoch.",
    source="KIP-98, ProducerAppendInfo.checkProducerEpoch",
)


def appends(state: Producers | None, event: Event) -> Producers:
    """A batch is at the end of the log."""
    known = state or Producers(written={})
    producer_id, epoch, base = event["producer_id"], event["producer_epoch"], event["base_sequence"]
    if producer_id is None or producer_id < 0:
        return known
    if base == NO_SEQUENCE:  # a marker
        before = known.written.get(producer_id)
        if before is None or before.epoch != epoch:
            known.written[producer_id] = Written(epoch=epoch)
        return known
    last = (base + event["last_offset"] - event["base_offset"]) % SEQUENCES
    known.written[producer_id] = Written(epoch=epoch, last_sequence=last)
    return known


def is_asked_about(state: Producers | None, event: Event) -> Producers:
    """The leader has asked whether the partition is in a producer's transaction."""
    known = state or Producers(written={})
    written = known.written.get(event["producer_id"])
    if written is not None:
        written.verifying = True
    return known


def refuses(state: Producers | None, event: Event) -> Producers | Illegal:
    """A batch was not written."""
    known = state or Producers(written={})
    written = known.written.get(event["producer_id"])
    if written is None:
        return known
    epoch, base = event["producer_epoch"], event["base_sequence"]
    if event["error"] == OLD_EPOCH and epoch >= written.epoch:
        return Illegal(CURRENT, known)
    if event["error"] == OUT_OF_ORDER and (_begins(written, epoch, base) or _continues(written, epoch, base)):
        return Illegal(FOLLOWS, known)
    return known


def _begins(written: Written, epoch: int, base: int) -> bool:
    return epoch > written.epoch and base == 0


def _continues(written: Written, epoch: int, base: int) -> bool:
    last = written.last_sequence
    return epoch == written.epoch and last is not None and not written.verifying and base == (last + 1) % SEQUENCES


def forgets(state: Producers | None, event: Event) -> Producers:
    """The log was cut, loaded or removed."""
    return Producers(written={})


def _stopped(event: Event) -> list[tuple[Key, Event]]:
    """Return the partitions that a StopReplica names."""
    named: list[dict[str, Any]] = event["partitions"] if event["api"] == "StopReplica" else []
    return [((each["topic"], each["partition"]), each) for each in named]


SUBJECT = Subject(
    name="producer",
    rules=(FOLLOWS, CURRENT),
    legal={
        "append": appends,
        "txn_verification": is_asked_about,
        "batch_refused": refuses,
        "truncate": forgets,
        "recovery": forgets,
        "ctl_recv": forgets,
    },
    fresh=None,
    parts={"ctl_recv": _stopped},
)
