from typing import Any

from tests.analysis.fact_rows import Row
from tests.analysis.protocol_rows import acknowledged, injected, refused
from tests.checks.answers import fails, passes, table_of, unknown

S = 10**9
SERVED = acknowledged(2, high_watermark=3)


def disk(from_s: float, to_s: float, *, isr_size: int = 3, **other: Any) -> Row:
    return refused(isr_size, error=56, from_ns=int(from_s * S), to_ns=int(to_s * S), **other)


def paused(broker: str, from_s: float, healed_s: float | None, *, fault: str = "pause") -> Row:
    return injected(healed_s=healed_s, fault=fault, targets=[broker], intended_ns=int(from_s * S))


CASES = {
    "nothing was refused": passes(SERVED),
    "a disk fails once": passes(SERVED, disk(5, 5)),
    "a disk fails while several ask": passes(SERVED, disk(5, 8)),
    "a leader leads on": fails(
        SERVED,
        disk(5, 9),
        text="broker 1, leader of orders-0 in epoch 0, refused 3 batches because of its disk, and led on for 4 s",
        facts=["refusals"],
        epochs=[0],
    ),
    "a leader leads on while its ISR shrinks": fails(
        SERVED, disk(5, 6), disk(8, 9, isr_size=1), text="for 4 s at least, with 3 in the ISR"
    ),
    "a leader leads on for producers that ask for less": fails(SERVED, disk(5, 6), disk(8, 9, acks=1)),
    "a leader leads again later": passes(SERVED, disk(5, 5), disk(60, 60, leader_epoch=4)),
    "another leader's disk fails too": passes(SERVED, disk(5, 5), disk(60, 60, broker=2)),
    "another partition's lead goes too": passes(SERVED, disk(5, 5), disk(60, 60, partition=1)),
    "a broker that leads nothing says so for long": passes(SERVED, disk(5, 60, leader_epoch=-1, isr_size=0)),
    "a leader refuses for another reason for long": passes(SERVED, refused(1, error=19, from_ns=0, to_ns=60 * S)),
    "a leader that stood still meanwhile": passes(SERVED, disk(5, 10), paused("1", 5.5, 9.5)),
    "a leader that had hardly a processor meanwhile": passes(
        SERVED, disk(5, 10), paused("1", 5.5, 9.5, fault="cpu-limit")
    ),
    "a leader that stood still between two refusals": passes(SERVED, disk(5, 6), disk(8, 10), paused("1", 6.5, 7.5)),
    "a leader that stood still until it refused": passes(SERVED, disk(5, 10), paused("1", 1, 5)),
    "a leader that stands still as it refuses": passes(SERVED, disk(5, 10), paused("1", 10, 14)),
    "a leader is paused, until an unknown time": passes(SERVED, disk(5, 10), paused("1", 5.5, None)),
    "another broker stood still meanwhile": fails(SERVED, disk(5, 10), paused("2", 5.5, 9.5)),
    "a leader stood still before": fails(SERVED, disk(5, 10), paused("1", 1, 4)),
    "a leader stands still afterwards": fails(SERVED, disk(5, 10), paused("1", 11, 14)),
    "a leader is killed meanwhile": fails(SERVED, disk(5, 10), paused("1", 6, 7, fault="kill")),
    "no broker says what it answered": unknown(text="acknowledgements"),
}

test_who_has_no_disk_does_not_lead_on = table_of("I40", CASES)
