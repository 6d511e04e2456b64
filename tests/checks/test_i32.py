from harness.store.history import Sign
from tests.analysis.protocol_rows import S, sign
from tests.checks.answers import fails, noted, passes, table_of, unknown

OWN = (Sign.PRODUCE, Sign.FETCH, Sign.READ, Sign.COMMIT)
WRONG = sign(OWN[0], "it is not")[1]["detail"]

CASES = {
    "every sign is there": passes(*map(sign, OWN)),
    **{
        f"no {each.value}": fails(*map(sign, OWN), sign(each, "it is not"), text="it is not, 60 s after")
        for each in OWN
    },
    "it was never there": fails(sign(OWN[0], WRONG), text="60 s after the last heal, and never since then."),
    "it was there for a while": fails(
        sign(OWN[0], WRONG, since_ns=30 * S), text="and not for 40 s.", shown='"silent_s":40.0'
    ),
    "a sign that another check asks for": passes(sign(OWN[0]), sign(Sign.IN_SYNC, WRONG)),
    "something keeps the cluster from it": noted(
        sign(OWN[0], WRONG, hindrance="nobody runs"), text="never since then; but nobody runs."
    ),
    "hindered here, and not there": fails(
        sign(OWN[0], WRONG, hindrance="nobody runs"), sign(OWN[0], WRONG), severities=["violation", "note"]
    ),
    "a busy machine that has time": fails(sign(OWN[0], WRONG, cpu_percent=100, load_percent=199)),
    "many processes that do little": fails(sign(OWN[0], WRONG, cpu_percent=94, load_percent=400)),
    "a machine that is starved": unknown(
        sign(OWN[0], WRONG, cpu_percent=95, load_percent=200),
        text="nobody can tell why it is not: its processors were busy for 95 %, its load was 200 % of them",
    ),
    "a harness that is a little late": fails(sign(OWN[0], WRONG, late_ms=1999)),
    "a harness that was kept from running": unknown(sign(OWN[0], WRONG, late_ms=2000), text="ran 2000 ms late"),
    "a starved machine on which every sign is there": passes(sign(OWN[0], cpu_percent=100, load_percent=900)),
    "a starved machine on which what is missing is hindered": noted(
        sign(OWN[0], WRONG, hindrance="nobody runs", late_ms=9000)
    ),
    "nobody looked": unknown(text="no rows in liveness"),
}

test_what_is_served_again_in_peace = table_of("I32", CASES)
