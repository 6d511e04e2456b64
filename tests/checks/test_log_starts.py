from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import found_log
from tests.checks.answers import fails, passes, table_of

LED = claimed(1, 0, high_watermark=0, end=0)

CASES = {
    "no log was loaded": passes(LED),
    "it starts where it did": passes(LED, found_log()),
    "it starts later": fails(
        LED,
        found_log(previous_log_start_offset=2),
        text="Records that nothing deleted stay: after a clean stop of broker 2",
        offsets=[3],
        facts=["log_loads"],
    ),
    "it starts later after a crash": passes(LED, found_log(previous_log_start_offset=2, clean=False, closed=False)),
    "it starts earlier": fails(
        LED,
        found_log(previous_log_start_offset=4),
        text="orders-0 starts at 3, and started at 4 before",
        offsets=[3],
        facts=["log_loads"],
    ),
    "it starts earlier after a crash": passes(LED, found_log(previous_log_start_offset=4, clean=False, closed=False)),
    "it starts earlier, trusted without a clean stop": passes(
        LED, found_log(previous_log_start_offset=4, closed=False)
    ),
    "it starts later, not trusted after a clean stop": passes(LED, found_log(previous_log_start_offset=2, clean=False)),
    "the last life did not say where it started": passes(LED, found_log(previous_log_start_offset=None)),
}

CASES |= CASES["no log was loaded"].without_each("leadership_claims")

test_where_logs_start = table_of("log-starts", CASES)
