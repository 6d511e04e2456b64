from tests.analysis.protocol_rows import registered, unforeseen
from tests.checks.answers import fails, passes, table_of

THERE = registered(1)

CASES = {
    "no broker has failed": passes(THERE),
    "a broker has failed": fails(
        THERE,
        unforeseen(),
        text="broker 1 raised KeyError: 3 at controller.py:7 _elect in election.failed; it logged 1 of them",
        facts=["unexpected_errors"],
    ),
    "it fails again and again in one place": fails(
        THERE, unforeseen(seq=9, error="KeyError: 4"), unforeseen(seq=8), text="KeyError: 3", severities=["violation"]
    ),
    "it fails in two places": fails(
        THERE, unforeseen(), unforeseen(at="controller/context.py:9 of"), severities=["violation"] * 2
    ),
}

CASES |= CASES["no broker has failed"].without_each("registrations")

test_errors_of_brokers = table_of("unexpected-errors", CASES)
