"""The cases of both checks that ask for signs of life: they differ in which signs."""

from collections.abc import Mapping, Sequence

from harness.store.history import Sign
from tests.analysis.protocol_rows import S, sign
from tests.checks.answers import Case, fails, noted, passes, unknown


def cases(own: Sequence[Sign], other: Sign) -> Mapping[str, Case]:
    """Return the cases of a check that asks for its own signs, and not for the other."""
    wrong = "it is not"
    return {
        "every sign is there": passes(*map(sign, own)),
        **{f"no {each.value}": fails(*map(sign, own), sign(each, wrong), text="it is not, 60 s after") for each in own},
        "it was never there": fails(sign(own[0], wrong), text="60 s after the last heal, and never since then."),
        "it was there for a while": fails(
            sign(own[0], wrong, since_ns=30 * S), text="and not for 40 s.", shown='"silent_s":40.0'
        ),
        "a sign that another check asks for": passes(sign(own[0]), sign(other, wrong)),
        "something keeps the cluster from it": noted(
            sign(own[0], wrong, hindrance="no broker runs"), text="never since then; but no broker runs."
        ),
        "hindered here, and not there": fails(
            sign(own[0], wrong, hindrance="no broker runs"), sign(own[0], wrong), severities=["violation", "note"]
        ),
        "a busy machine that has time": fails(sign(own[0], wrong, cpu_percent=100, load_percent=199)),
        "many processes that do little": fails(sign(own[0], wrong, cpu_percent=94, load_percent=400)),
        "a machine that is starved": unknown(
            sign(own[0], wrong, cpu_percent=95, load_percent=200),
            text="the cause is unknown: it is not; its processors were busy for 95 %, its load was 200 % of them",
        ),
        "a harness that is a little late": fails(sign(own[0], wrong, late_ms=1999)),
        "a harness that was kept from running": unknown(sign(own[0], wrong, late_ms=2000), text="ran 2000 ms late"),
        "a starved machine on which every sign is there": passes(sign(own[0], cpu_percent=100, load_percent=900)),
        "a starved machine on which what is missing is hindered": noted(
            sign(own[0], wrong, hindrance="no broker runs", late_ms=9000)
        ),
        "it was not probed": unknown(text="no rows in liveness"),
    }
