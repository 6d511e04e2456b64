"""Which producers wait for the coordinator's word that a partition is in their transaction (KIP-890, part 1)?

Before the first batch of a transaction the leader asks the transaction coordinator. What it is asked for is noted in a
`Verification`, and only the append that brings this very object is admitted: a marker that was written meanwhile has
removed it, so a late answer begins no transaction that would never end.
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
    """Those of one log, by producer."""

    __slots__ = ("_by_id",)

    def __init__(self) -> None:
        self._by_id: dict[int, Verification] = {}

    def get(self, producer_id: int) -> Verification | None:
        """Return what a producer waits for."""
        return self._by_id.get(producer_id)

    def begin(self, header: BatchHeader, now_ms: int) -> Verification:
        """Return what has to be verified before this batch; the same object for all batches that wait."""
        known = self._by_id.setdefault(
            header.producer_id, Verification(now_ms, header.producer_epoch, header.base_sequence)
        )
        if header.producer_epoch > known.epoch:
            known.epoch, known.lowest_sequence = header.producer_epoch, header.base_sequence
        elif header.producer_epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, header.base_sequence)
        return known

    def end(self, producer_id: int) -> None:
        """A batch or a marker of a transaction was written: nothing is waited for."""
        self._by_id.pop(producer_id, None)

    def expire(self, before_ms: int) -> None:
        """Forget what was asked at `before_ms` or before it."""
        for producer_id in [key for key, each in self._by_id.items() if each.since_ms <= before_ms]:
            del self._by_id[producer_id]
