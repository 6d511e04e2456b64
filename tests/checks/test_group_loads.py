from tests.analysis.fact_rows import claimed
from tests.analysis.group_rows import loaded, owned
from tests.checks.answers import UNHEARD, fails, passes, table_of, unknown

OFFSETS = "__consumer_offsets"
LED = claimed(1, 3, high_watermark=30, end=40, topic=OFFSETS)

CASES = {
    "a coordinator reads the log that it leads with": passes(LED, loaded(40)),
    "it reads what was written since, too": passes(LED, loaded(41)),
    "it reads to the high watermark alone": fails(
        LED,
        loaded(30),
        text="broker 1 led __consumer_offsets-0 in epoch 3 with a log to offset 40, and read it to 30",
        offsets=[30],
        epochs=[3],
        shown='"claim":{"high_watermark":30,"log_end_offset":40,"seq":0}',
    ),
    "its disk would not give it more": passes(LED, loaded(30, disk_error="the disk is gone")),
    "it stops one record early": fails(LED, loaded(39)),
    "it led another partition with more": passes(
        claimed(1, 3, high_watermark=0, end=99, topic=OFFSETS, partition=1), loaded(9)
    ),
    "it led it with more in another epoch": passes(claimed(1, 4, high_watermark=0, end=99, topic=OFFSETS), loaded(9)),
    "another broker led it with more": passes(claimed(2, 3, high_watermark=0, end=99, topic=OFFSETS), loaded(9)),
    "it followed with more": passes(claimed(1, 3, high_watermark=0, end=99, topic=OFFSETS, role="follower"), loaded(9)),
    "an unload has read nothing": passes(LED, loaded(epoch=3, kind="unload")),
    "it loads, stops and loads again": passes(
        LED, loaded(seq=1), loaded(epoch=4, seq=2, kind="unload", broker=1), loaded(epoch=5, seq=3, broker=1)
    ),
    "it stops in the same epoch, as the replica is deleted": passes(LED, loaded(seq=1), loaded(seq=2, kind="unload")),
    "an unload of an older epoch takes effect": fails(
        LED,
        loaded(epoch=5, seq=1, broker=1),
        loaded(epoch=4, seq=2, kind="unload", broker=1),
        text="a unload of epoch 4 took effect on broker 1, which had loaded __consumer_offsets-0 in epoch 5",
    ),
    "it is older than the latest of two loads": fails(
        LED, loaded(seq=1), loaded(epoch=5, seq=2, broker=1), loaded(epoch=4, seq=3, kind="unload", broker=1)
    ),
    "a load of an older epoch takes effect": fails(
        LED, loaded(epoch=5, seq=1, broker=1), loaded(epoch=3, seq=2, broker=1), text="a load of epoch 3"
    ),
    "an older unload is no measure": passes(
        LED, loaded(epoch=5, seq=1, kind="unload", broker=1), loaded(epoch=4, seq=2, kind="unload", broker=1)
    ),
    "another broker is behind": passes(LED, loaded(epoch=5, seq=1, broker=1), loaded(epoch=4, seq=2, broker=2)),
    "lines of a broker are missing": unknown(LED, UNHEARD, loaded(30), text="missing lines"),
    "members say what they own, and no coordinator tells": unknown(
        LED, owned(), loaded(40), text="no coordinator's log"
    ),
    "there are no groups": passes(LED),
    "nothing is there": unknown(loaded(30), text="leadership_claims"),
}

test_coordinators_read_it_all = table_of("I39", CASES)
