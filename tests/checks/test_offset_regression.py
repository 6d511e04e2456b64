from tests.analysis.fact_rows import committed, elected_uncleanly, fetched, led
from tests.analysis.group_rows import retired
from tests.checks.answers import UNCLEAN, UNREADABLE, excused, fails, passes, table_of, unknown

TEN = committed(10, at=(1, 2))

CASES = {
    "what was committed is read back": passes(TEN, fetched(10, at=(3, 4))),
    "a later commit, answered or not, is read back": passes(TEN, fetched(12, at=(3, 4))),
    "less than an acknowledged commit is read back": fails(
        TEN, fetched(7, at=(3, 4)), text="of orders-0 after offset 10 had been acknowledged"
    ),
    "the commit has vanished": fails(TEN, fetched(-1, at=(3, 4))),
    "it had expired, or was deleted": passes(TEN, fetched(-1, at=(3, 4)), retired(at_ns=1, group="g0")),
    "it is taken back while that is read": passes(TEN, fetched(-1, at=(3, 4)), retired(at_ns=4, group="g0")),
    "it was taken back before it was committed": fails(TEN, fetched(-1, at=(3, 4)), retired(at_ns=0, group="g0")),
    "it is taken back later": fails(TEN, fetched(-1, at=(3, 4)), retired(at_ns=5, group="g0")),
    "it was taken back, and something lower is read": fails(TEN, fetched(0, at=(3, 4)), retired(at_ns=3, group="g0")),
    "what another group committed is taken back": fails(TEN, fetched(-1, at=(3, 4)), retired(at_ns=3, group="g1")),
    "one is explained by that, and another of the same process or number is not": fails(
        TEN,
        fetched(-1, at=(3, 4)),
        retired(at_ns=4, group="g0"),
        committed(12, at=(5, 6), process="c2"),
        fetched(-1, at=(7, 8)),
        fetched(-1, at=(7, 8), process="c1", index=3),
        severities=["violation", "violation"],
    ),
    "it was not acknowledged": passes(committed(10, at=(1, 2), outcome="info"), fetched(7, at=(3, 4))),
    "the group went back by itself": passes(TEN, committed(7, at=(3, 4)), fetched(7, at=(5, 6))),
    "the group tried to go back, with an unknown outcome": passes(
        TEN, committed(7, at=(3, None), outcome="info"), fetched(7, at=(5, 6))
    ),
    "going back had been refused": fails(TEN, committed(7, at=(3, 4), outcome="fail"), fetched(7, at=(5, 6))),
    "an older commit comes back": fails(committed(7, at=(0, 0)), TEN, fetched(7, at=(3, 4))),
    "the read-back was invoked before the commit was acknowledged": passes(TEN, fetched(7, at=(1, 2))),
    "the read-back was invoked at the instant at which the commit was acknowledged": fails(TEN, fetched(7, at=(2, 4))),
    "another group": passes(TEN, fetched(7, at=(3, 4), group="g1")),
    "another partition": passes(TEN, fetched(7, at=(3, 4), partition=1)),
    "another topic": passes(TEN, fetched(7, at=(3, 4), topic="other")),
    "a commit that only the log has is without an instant": passes(
        committed(10, at=(0, None), source="log", invoke_ns=None), fetched(-1, at=(0, 1)), TEN
    ),
    "the group went back after that": fails(TEN, fetched(7, at=(3, 4)), committed(7, at=(5, 6), process="c1")),
    "the group goes back while that is read": passes(TEN, fetched(7, at=(3, 4)), committed(7, at=(4, 5), process="c1")),
    "two commits were under way together": passes(committed(7, at=(0, 1), process="c1"), TEN, fetched(7, at=(3, 4))),
    "one read-back is explained, and another of the same process or number is not": fails(
        TEN,
        fetched(7, at=(3, 4)),
        committed(7, at=(5, None), outcome="info", process="c2"),
        fetched(7, at=(7, 8)),
        fetched(7, at=(7, 8), process="c1", index=3),
    ),
    "the clients' history has holes": unknown(TEN, fetched(7, at=(3, 4)), UNREADABLE),
    "nothing was committed": unknown(),
    "an unclean election of the offsets topic, as the scenario allows": excused(
        TEN, fetched(7, at=(3, 4)), led(2, 1, unclean=True, topic="__consumer_offsets"), settings=UNCLEAN
    ),
    "an unclean election of the offsets topic, and a clean one where it was not allowed": fails(
        TEN,
        fetched(7, at=(3, 4)),
        led(2, 1, unclean=True, unclean_allowed=False, topic="__consumer_offsets"),
        led(3, 2, topic="__consumer_offsets"),
        settings=UNCLEAN,
    ),
    "an unclean election of the offsets topic": excused(
        TEN, fetched(7, at=(3, 4)), elected_uncleanly(2, 1, topic="__consumer_offsets"), settings=UNCLEAN
    ),
    "an unclean election of another topic": fails(
        TEN, fetched(7, at=(3, 4)), elected_uncleanly(2, 1), settings=UNCLEAN
    ),
}

test_committed_offsets_read_back = table_of("offset-regression", CASES)
