from typing import Any

from tests.analysis.fact_rows import Row
from tests.analysis.protocol_rows import illegal, walked
from tests.checks.answers import fails, passes, table_of, unknown


def steps(*rows: Row, **wanted: Any) -> Any:
    return fails(walked(), *rows, **wanted)


CASES = {
    "every step was legal": passes(walked(), walked("leader")),
    "a step was illegal": steps(
        illegal(),
        text="A leader truncates nothing. (replica.leader-keeps-log, KIP-101) Step: ",
        shown='"rule":"replica.leader-keeps-log"',
    ),
    "two steps were": steps(illegal(), illegal(seq=9), severities=["violation", "violation"]),
    "a step that is about no partition was": steps(
        illegal(subject="group", name="g-0", topic=None, partition=None),
        text=("Before it, the group g-0 was role=leader"),
    ),
    "nothing was walked": unknown(text="nothing to judge: no rows in steps"),
}

test_step_by_step = table_of("step-by-step", CASES)
