from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import S, told_follower
from tests.checks.answers import fails, passes, table_of

LED = claimed(1, 0, high_watermark=0, end=0)

CASES = {
    "no follower has copied anything": passes(LED),
    "the follower knows what its leader knew": passes(LED, told_follower(7)),
    "it has heard of more since": passes(LED, told_follower(9)),
    "it knows less": fails(
        LED,
        told_follower(6),
        text="up to 9, when the leader's was 7, and its own was never higher than 6",
        offsets=[7],
        epochs=[0],
        facts=["follower_watermarks"],
    ),
    "it knows nothing": fails(LED, told_follower(None), text="never higher than 0"),
    "its log ends before": passes(LED, told_follower(5, last_offset=4)),
    "its log ends before, and it knows less": fails(LED, told_follower(4, last_offset=4), offsets=[5]),
    "it ended just after it had copied": passes(LED, told_follower(0, lived_ns=11 * S - 1)),
    "it lived for long enough": fails(LED, told_follower(0, lived_ns=11 * S)),
    "another follower of the epoch knows less": fails(
        LED, told_follower(7), told_follower(3, broker=3), text="broker 3"
    ),
    "nothing says what its leader knew": passes(LED, told_follower(0, leader_high_watermark=None)),
    "its log starts earlier than its leader's": fails(
        LED,
        told_follower(7, log_start_offset=2),
        text="up to 9, when the leader's log started at 3, and its own at 2 until it wrote under another epoch",
        offsets=[3],
        epochs=[0],
        facts=["follower_watermarks"],
    ),
    "its log starts later than its leader's": passes(LED, told_follower(7, log_start_offset=4)),
    "its log starts earlier, and its disk failed": passes(LED, told_follower(7, log_start_offset=2, disk_failed=True)),
    "its log starts earlier, and it ended just after it had copied": passes(
        LED, told_follower(7, log_start_offset=2, lived_ns=11 * S - 1)
    ),
    "nothing says where its leader's log starts": passes(
        LED, told_follower(7, leader_log_start_offset=None, log_start_offset=0)
    ),
}

CASES |= CASES["no follower has copied anything"].without_each("leadership_claims")

test_what_followers_are_told = table_of("follower-watermarks", CASES)
