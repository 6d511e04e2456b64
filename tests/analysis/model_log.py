"""One replica's log in the model of a cluster: records, high watermark and epoch cache, by Kafka's rules (KIP-101)."""

from dataclasses import dataclass, field

NONE = -1


@dataclass(frozen=True)
class Entry:
    epoch: int
    key: str
    value: str
    producer_id: int = NONE
    sequence: int = NONE
    marker: str = ""
    """commit or abort: the entry is a transaction marker."""
    coordinator_epoch: int = NONE
    """Of a marker."""
    transactional: bool = False
    transition: str = ""
    """State of the transactional id in `key`; `value` has the transaction's partitions."""
    of_producer: int = NONE
    """Producer of that id."""


@dataclass
class Replica:
    """What one broker holds of a partition."""

    log: list[Entry] = field(default_factory=list)
    high_watermark: int = 0
    cache: list[tuple[int, int]] = field(default_factory=list)
    """Leader epochs with their first offset."""
    role_epoch: int = NONE
    """Leader epoch of the role that it has; none once its broker has started anew."""

    @property
    def end(self) -> int:
        return len(self.log)

    @property
    def latest_epoch(self) -> int:
        return self.cache[-1][0] if self.cache else NONE

    def append(self, entry: Entry) -> None:
        self.assign(entry.epoch, self.end)
        self.log.append(entry)

    def assign(self, epoch: int, start: int) -> None:
        """Note where an epoch begins; an epoch that has no record of its own gives way."""
        if epoch > self.latest_epoch:
            self.cache = [*((e, s) for e, s in self.cache if s < start), (epoch, start)]

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch that is not above this one, and where it ends, as a leader answers."""
        later = [start for e, start in self.cache if e > epoch]
        earlier = [e for e, _ in self.cache if e <= epoch]
        if epoch == self.latest_epoch:
            return epoch, self.end
        if not later:
            return NONE, NONE
        return (earlier[-1] if earlier else epoch), later[0]

    def common_end(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch of its own that is not above this one, and where that ends here."""
        earlier = [e for e, _ in self.cache if e <= epoch]
        later = [start for e, start in self.cache if e > epoch]
        return (earlier[-1], later[0] if later else self.end) if earlier else (NONE, NONE)

    def cut(self, to: int) -> None:
        del self.log[to:]
        self.cache = [(epoch, start) for epoch, start in self.cache if start < to]
        self.high_watermark = min(self.high_watermark, to)
