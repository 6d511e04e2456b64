"""Verifications of transactions in progress: the coordinator must confirm a partition (KIP-890, part 1).

Before the first batch of a transaction the leader asks the transaction coordinator. A `Verification` stands for the
question, and only an append with this very object is admitted: a marker written meanwhile has removed it, so a late
answer begins no transaction that would never end.
"""

from dataclasses import dataclass

from harness.broker.log.batch import BatchHeader


@dataclass(slots=True, eq=False)
class Verification:
    """A question to the coordinator about one producer, open or answered (`VerificationStateEntry`)."""

    since_ms: int
    epoch: int
    lowest_sequence: int
    """No batch with a later sequence may come first."""


class Verifications:
    """The verifications of one log, by producer."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Verification] = {}

    def get(self, producer_id: int) -> Verification | None:
        """Return a producer's pending verification."""
        return self._by_id.get(producer_id)

    def begin(self, header: BatchHeader, now_ms: int) -> Verification:
        """Return the verification needed before this batch; the same object for all waiting batches."""
        known = self._by_id.setdefault(
            header.producer_id, Verification(now_ms, header.producer_epoch, header.base_sequence)
        )
        if header.producer_epoch > known.epoch:
            known.epoch, known.lowest_sequence = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)
        return known

    def end(self, producer_id: int) -> None:
        """A batch or a marker of a transaction was written: no verification is pending."""
        self._by_id.pop(producer_id, None)

    def expire(self, before_ms: int) -> None:
        """Drop verifications from `before_ms` or before it."""
        for producer_id in [key for key, each in self._by_id.items() if each.since_ms <= before_ms]:
            del self._by_id[producer_id]
