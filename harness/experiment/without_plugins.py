"""What is answered for a run whose plugins are not all on this machine, or cannot be imported?

A check that is missing or broken is not judged. Where a fault or the system is missing no check is: nothing says which
losses are expected, or which evidence there is. Both forbid PASS.
"""

from collections.abc import Iterable

from harness.contracts import registry
from harness.contracts.registry import Kind
from harness.scenario.file import scenario_of
from harness.scenario.used_plugins import NEEDED_TO_JUDGE, Missing, missing_plugins, plugins_of
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, Remark
from harness.verdict import SystemVerdict

NO_PLUGIN = "without a plugin: "
"""How the reason begins for which a check is not judged that cannot be asked."""


def asked_of(scenario_checks: list[str]) -> list[str]:
    """Return the checks that a scenario names and that are on this machine; all, if it names none."""
    named = [name for name in scenario_checks if registry.known(Kind.CHECK, name)]
    return named if scenario_checks else registry.names(Kind.CHECK)


def needed_plugin(folder: RunFolder) -> Missing | None:
    """Return a missing plugin without which no check can be asked; None if there is none."""
    return next((each for each in missing_plugins(folder) if each.kind in NEEDED_TO_JUDGE), None)


def judged_without(folder: RunFolder) -> list[CheckResult]:
    """Return what is answered for the checks of a run that cannot be asked."""
    if needed := needed_plugin(folder):
        names = [name for used in plugins_of(folder) for name in used.plugins.get(Kind.CHECK, ())]
        return [_not_judged(name, str(needed)) for name in names]
    missing = {each.name: str(each) for each in missing_plugins(folder) if each.kind == Kind.CHECK}
    broken = registry.unusable(asked_of(scenario_of(folder).checks))
    return [_not_judged(name, reason) for name, reason in (broken | missing).items()]


def remarks_without(checks: Iterable[CheckResult]) -> list[Remark]:
    """Return why a run cannot pass some of whose checks could not be asked, each reason once."""
    reasons = dict.fromkeys(each.reason for each in checks if each.reason.startswith(NO_PLUGIN))
    return [
        Remark(text=f"not everything was judged {reason}", phase=Phase.JUDGE, forbids_pass=True) for reason in reasons
    ]


def _not_judged(name: str, reason: str) -> CheckResult:
    return CheckResult(
        check=name,
        promise=f"the check {registry.check_title(name)}",
        verdict=SystemVerdict.NOT_JUDGED,
        reason=NO_PLUGIN + reason,
    )
