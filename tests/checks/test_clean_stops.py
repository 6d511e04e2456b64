from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import found_log
from tests.checks.answers import fails, passes, table_of

LED = claimed(1, 0, high_watermark=0, end=0)

CASES = {
    "no log was loaded": passes(LED),
    "the broker had closed its logs": passes(LED, found_log()),
    "it had not": fails(
        LED,
        found_log(closed=False),
        text="broker 2 loaded orders-0 as clean when it started as inc-2, and its previous process inc-before",
        facts=["log_loads"],
    ),
    "it had not, and checks the log": passes(LED, found_log(clean=False, closed=False)),
    "it had closed them, and checks the log all the same": passes(LED, found_log(clean=False)),
    "nothing is known of its life before": passes(LED, found_log(closed=None, previous_incarnation=None)),
    "two logs of it are trusted": fails(
        LED, found_log(closed=False), found_log(closed=False, partition=1), severities=["violation"] * 2
    ),
}

CASES |= CASES["no log was loaded"].without_each("leadership_claims")

test_which_logs_are_trusted = table_of("clean-stops", CASES)
