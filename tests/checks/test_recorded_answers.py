from tests.analysis.fact_rows import RUN, Row, sent
from tests.checks.answers import UNREADABLE, fails, passes, table_of, unknown


def played(difference: str | None = None) -> Row:
    row = {"process": "script-player-1", "index": 3, "script": "quick script 7", "invoke_ns": 1, "complete_ns": 2}
    return "scripts", {"run_id": RUN, "difference": difference, **row}


DIFFERS = played("step 2, version 4: Fetch: error_code 0 ≠ 1")

CASES = {
    "no script was played": passes(sent("a", 0)),
    "a script is answered as recorded": passes(sent("a", 0), played()),
    "a script is answered otherwise": fails(
        sent("a", 0),
        played(),
        DIFFERS,
        text="in quick script 7, step 2, version 4: Fetch: error_code 0 ≠ 1",
        shown='"process":"script-player-1","index":3',
        facts=["scripts"],
    ),
    "a line of a client cannot be read": unknown(sent("a", 0), UNREADABLE, played(), text="unreadable"),
    "nothing is there": unknown(DIFFERS, text="sends"),
}

test_answers_are_as_recorded = table_of("recorded-answers", CASES)
