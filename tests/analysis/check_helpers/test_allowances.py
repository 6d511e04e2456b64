import pytest

from harness.contracts import registry
from harness.contracts.checks import Allowance

CHECKS = [registry.check(name) for name in registry.names(registry.Kind.CHECK)]
EXCUSED = {f"{check.name}: {each.reason}": each for check in CHECKS for each in check.excused_by}


@pytest.mark.parametrize("allowance", EXCUSED.values(), ids=EXCUSED)
def test_an_allowance_has_a_condition_and_a_reason(allowance: Allowance) -> None:
    assert allowance.reason
    conditions = (allowance.acks, allowance.unclean_election, allowance.power_loss, allowance.without_idempotence)
    assert any(conditions), "an allowance without a condition would excuse everything"


def test_some_anomalies_are_excused_and_most_promises_never() -> None:
    assert {"lost-write", "I10"} < {name.partition(": ")[0] for name in EXCUSED}
    assert 0 < sum(bool(check.excused_by) for check in CHECKS) < len(CHECKS) / 2
