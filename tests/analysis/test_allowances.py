import pytest

from harness.analysis.allowances import ALLOWANCES
from harness.contracts import registry

NAMES = {registry.check(name).name for name in registry.names(registry.Kind.CHECK)}


@pytest.mark.parametrize("allowance", ALLOWANCES, ids=lambda allowance: f"{allowance.anomaly}: {allowance.reason}")
def test_an_allowance_names_a_check_and_has_a_condition_and_a_reason(allowance):
    assert allowance.anomaly in NAMES
    assert allowance.reason
    conditions = (allowance.acks, allowance.unclean_election, allowance.power_loss, allowance.without_idempotence)
    assert any(conditions), "an allowance without a condition would excuse everything"
