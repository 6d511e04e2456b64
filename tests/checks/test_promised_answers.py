from tests.analysis.fact_rows import RUN, Row, sent
from tests.checks.answers import UNREADABLE, fails, passes, table_of, unknown


def answered(difference: str | None = None) -> Row:
    row = {"process": "steps", "index": 3, "request": "EndTxn 1 to broker 2", "promised": '{"error_code": 47}'}
    instants = {"answer": '{"error_code": 0}', "invoke_ns": 1, "complete_ns": 2}
    return "promised_answers", {"run_id": RUN, "difference": difference, **row, **instants}


DIFFERS = answered("error_code is 0 (NONE), not INVALID_PRODUCER_EPOCH")

CASES = {
    "no request was sent": passes(sent("a", 0)),
    "a request is answered as promised": passes(sent("a", 0), answered()),
    "a request is answered otherwise": fails(
        sent("a", 0),
        answered(),
        DIFFERS,
        text="of the answer to EndTxn 1 to broker 2, error_code is 0 (NONE), not INVALID_PRODUCER_EPOCH",
        shown='"process":"steps","index":3',
        facts=["promised_answers"],
    ),
    "a line of a client cannot be read": unknown(sent("a", 0), UNREADABLE, answered(), text="unreadable"),
    "nothing is there": unknown(DIFFERS, text="sends"),
}

test_answers_are_as_promised = table_of("promised-answers", CASES)
