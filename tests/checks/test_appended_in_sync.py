from dataclasses import replace
from typing import Any

from tests.analysis.fact_rows import Row, state
from tests.analysis.protocol_rows import appended, configured, refused
from tests.checks.answers import STRICT, fails, passes, table_of, unknown

INTERNAL: dict[str, Any] = {"topic": "__consumer_offsets"}
ALL_THREE = state(0, leader=1, epoch=0, isr=[1])
BROKERS_ASK = replace(STRICT, min_insync_replicas=1, broker_min_insync_replicas=2)
TWO_NEEDED = configured(min_insync_replicas=2)


def wrote(smallest_isr: int | None, *, acks_all: int | None = 1, **other: Any) -> Row:
    return appended(1, 0, 4, acks_all=acks_all, smallest_isr=smallest_isr, **other)


CASES = {
    "enough in sync at every append": passes(ALL_THREE, wrote(2)),
    "too few in sync at an append": fails(
        ALL_THREE,
        wrote(1),
        text="leader of orders-0 in epoch 0, wrote with 1 in the ISR where 2 are needed",
        facts=["appends"],
        epochs=[0],
    ),
    "with another acks level one is enough": passes(ALL_THREE, wrote(None, acks_all=0)),
    "a follower has no ISR": passes(ALL_THREE, wrote(2), appended(2, 0, 4)),
    "a topic with fewer replicas needs those": passes(state(0, leader=1, epoch=0, isr=[1], assignment=[1]), wrote(1)),
    "the topic itself asks for less": passes(ALL_THREE, configured(min_insync_replicas=1), wrote(1)),
    "the topic itself asks for more": fails(ALL_THREE, configured(min_insync_replicas=3), wrote(2)),
    "the brokers ask for more than another topic": fails(ALL_THREE, configured(), wrote(1), settings=BROKERS_ASK),
    "the brokers ask for more, and the topic asks for less": passes(
        ALL_THREE, configured(min_insync_replicas=1), wrote(1), settings=BROKERS_ASK
    ),
    "the brokers ask for more, and what the topic asks for is unknown": passes(
        ALL_THREE, wrote(1), settings=BROKERS_ASK
    ),
    "the topic once asked for less": passes(ALL_THREE, configured(min_insync_replicas=1), TWO_NEEDED, wrote(1)),
    "the requirement of an internal topic is unknown": passes(
        state(0, leader=1, epoch=0, isr=[1], **INTERNAL), wrote(1, **INTERNAL)
    ),
    "refused afterwards when the ISR had shrunk": passes(ALL_THREE, TWO_NEEDED, wrote(2), refused(1)),
    "refused afterwards with enough in sync": fails(
        ALL_THREE,
        TWO_NEEDED,
        wrote(2),
        refused(2),
        text="refused 3 batches that it had written, with 2 in the ISR where 2 are enough",
        facts=["refusals"],
    ),
    "refused before, with enough in sync": passes(ALL_THREE, TWO_NEEDED, wrote(2), refused(2, error=19)),
    "refused when the topic may have asked for more": passes(
        ALL_THREE, TWO_NEEDED, configured(min_insync_replicas=3), wrote(3), refused(2)
    ),
    "the requirement of the topic is unknown": passes(ALL_THREE, wrote(2), refused(2)),
    "the topic said its own for a while": passes(ALL_THREE, TWO_NEEDED, configured(), wrote(2), refused(2)),
    "refused where all replicas are fewer than asked for": fails(
        state(0, leader=1, epoch=0, isr=[1], assignment=[1]), TWO_NEEDED, wrote(1), refused(1)
    ),
    "refused when a reassignment had brought more replicas": passes(
        state(0, leader=1, epoch=0, isr=[1], assignment=[1]), ALL_THREE, TWO_NEEDED, wrote(2), refused(1)
    ),
    "the logs are older": unknown(ALL_THREE, wrote(None, acks_all=None), text="do not say acks"),
    "nothing was written": unknown(text="appends"),
}

test_what_is_written_while_few_are_in_sync = table_of("I26", CASES)
