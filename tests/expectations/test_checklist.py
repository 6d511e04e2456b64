"""Great Expectations' own diagnostics of every custom expectation: its examples, its renderers, its checklist."""

import contextlib
import io

import pytest

from tests.expectations.conftest import ENGINES

pytestmark = pytest.mark.spark

FOR_A_CODE_OWNER = "Has passed a manual review by a code owner for code standards and style guides"


@pytest.mark.filterwarnings("ignore:`result_format` configured at the:UserWarning")
@pytest.mark.parametrize("engine", ENGINES)
def test_every_custom_expectation_passes_the_checklist(engine, spark, gx_context):
    from expectations.row_expectation import RowExpectation
    from expectations.suites import SUITES

    custom = RowExpectation.__subclasses__()
    unmet, errors, silent = {}, {}, {}
    for expectation in custom:
        parameters = expectation.examples[0]["tests"][0]["in"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            diagnostics = expectation(**parameters).run_diagnostics(
                only_consider_these_backends=[engine], context=gx_context
            )
        name = expectation.__name__
        checks = diagnostics.maturity_checklist
        all_checks = [*checks.experimental, *checks.beta, *checks.production]
        unmet[name] = [check.message for check in all_checks if not check.passed]
        errors[name] = [error.error_msg for error in diagnostics.errors]
        silent[name] = [test.test_title for test in diagnostics.tests if test.backend != engine]
    nothing = {expectation.__name__: [] for expectation in custom}
    assert errors == nothing
    assert silent == nothing
    assert unmet == {name: [FOR_A_CODE_OWNER] for name in nothing}
    assert {type(each) for suite in SUITES for each in suite.expectations} >= set(custom), "each is in a suite"
