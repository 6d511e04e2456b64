from tests.analysis.fact_rows import claimed
from tests.analysis.protocol_rows import found_log, injected
from tests.checks.answers import fails, passes, table_of

LED = claimed(1, 0, high_watermark=0, end=0)

CASES = {
    "no log was loaded": passes(LED),
    "it ends after its recovery point": passes(LED, found_log()),
    "it ends at it": passes(LED, found_log(recovery_point=9)),
    "it ends before it": fails(
        LED,
        found_log(recovery_point=10),
        text="orders-0 ends at 9, and its checkpoint says that it is synced up to 10",
        offsets=[10],
        facts=["log_loads"],
    ),
    "it ends before it after a crash": fails(LED, found_log(recovery_point=10, clean=False, closed=False)),
    "its power was cut": fails(
        LED, found_log(recovery_point=10), injected(healed_s=9, fault="power-loss", targets=["2"])
    ),
    "its files were damaged": passes(
        LED, found_log(recovery_point=10), injected(healed_s=9, fault="disk-damage", targets=["2"])
    ),
    "another broker's files were": fails(
        LED, found_log(recovery_point=10), injected(healed_s=9, fault="disk-damage", targets=["1"])
    ),
}

CASES |= CASES["no log was loaded"].without_each("leadership_claims")

test_up_to_where_logs_are_synced = table_of("recovery-points", CASES)
