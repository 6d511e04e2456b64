from dataclasses import replace

from tests.analysis.fact_rows import state
from tests.analysis.protocol_rows import acknowledged, configured
from tests.checks.answers import STRICT, fails, passes, table_of, unknown

ALONE = [acknowledged(4, high_watermark=5, isr_size=1), state(0, leader=1, epoch=0, isr=[1])]
TWO = [acknowledged(4, high_watermark=5), state(0, leader=1, epoch=0, isr=[1, 2])]

CASES = {
    "enough in sync, and committed": passes(acknowledged(4, high_watermark=5)),
    "too few in sync": fails(*ALONE, text="with 1 in the ISR where 2 are needed"),
    "a topic with fewer replicas needs those": passes(
        acknowledged(4, high_watermark=5, isr_size=1), state(0, leader=1, epoch=0, isr=[1], assignment=[1])
    ),
    "an internal topic has settings of its own": passes(
        acknowledged(4, high_watermark=5, isr_size=1, topic="__consumer_offsets"),
        state(0, leader=1, epoch=0, isr=[1], topic="__consumer_offsets"),
    ),
    "the topic itself asks for less than the scenario": passes(*ALONE, configured(min_insync_replicas=1)),
    "the topic itself asks for more than the scenario": fails(
        *TWO, configured(min_insync_replicas=3), text="with 2 in the ISR where 3 are needed"
    ),
    "the topic once required less": passes(*TWO, configured(min_insync_replicas=2), configured(min_insync_replicas=3)),
    "the topic asks for nothing itself any more": passes(*TWO, configured(min_insync_replicas=3), configured()),
    "the topic asks for nothing itself, and the brokers for less than the scenario": passes(
        *ALONE, configured(), settings=replace(STRICT, broker_min_insync_replicas=1)
    ),
    "the topic asks for nothing itself, and what the brokers ask for is not known": fails(*ALONE, configured()),
    "an internal topic that asks for something itself": fails(
        acknowledged(4, high_watermark=5, isr_size=1, topic="__consumer_offsets"),
        state(0, leader=1, epoch=0, isr=[1], topic="__consumer_offsets"),
        configured(min_insync_replicas=2, topic="__consumer_offsets"),
    ),
    "two of its replicas went in a reassignment": passes(
        acknowledged(4, high_watermark=5, isr_size=1),
        state(0, leader=1, epoch=0, isr=[1]),
        state(1, leader=1, epoch=0, isr=[1], assignment=[1]),
    ),
    "two of its replicas went at the end of a reassignment, which no later state shows": passes(
        acknowledged(4, high_watermark=5, isr_size=1), state(0, leader=1, epoch=0, isr=[1], fewest_replicas=1)
    ),
    "without ZooKeeper's history one replica is enough": passes(acknowledged(4, high_watermark=5, isr_size=1)),
    "not committed": fails(
        acknowledged(5, high_watermark=5), offsets=[5], text="offset 5 while the high watermark was still 5"
    ),
    "not committed, and acked with another level than all": passes(acknowledged(5, high_watermark=5, acks=1)),
    "nothing was acknowledged": unknown(text="acknowledgements"),
}

test_what_is_acknowledged = table_of("I19", CASES)
