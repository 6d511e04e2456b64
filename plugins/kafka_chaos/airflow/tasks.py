"""The phases of a run as Airflow tasks: each takes the run folder's path, and nothing else passes between them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import XComArg, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

JUDGE_TIMEOUT = timedelta(minutes=30)


class InconclusiveError(AirflowException):
    """The run proved nothing; unlike a violation, it may be tried again."""


def run_phases(*, runs: Path, drive_timeout: timedelta) -> XComArg:
    """Add the tasks of one run to the current DAG: start → drive → collect_and_stop → judge → report.

    The parameters of the DAG run say what to run: `scenario` (a name or path), `seed` (or null) and `set` (a list of
    key=value, as the command line's `--set`).
    The cluster is gone before anything is judged; what drive left behind is judged also when drive failed. The last
    task fails on a violation, and raises `InconclusiveError` when nothing was proven.
    """

    @task(execution_timeout=timedelta(minutes=5))
    def start(params: dict[str, Any] | None = None) -> str:
        from harness import phases
        from harness.scenario.file import load_scenario
        from harness.scenario.source import set_option

        asked = params or {}
        scenario = load_scenario(asked["scenario"], [set_option(text) for text in asked["set"]])
        folder = phases.create_from(scenario, asked["seed"], runs)
        phases.start(folder)
        return str(folder.root)

    @task(execution_timeout=drive_timeout)
    def drive(root: str) -> None:
        from harness import phases
        from harness.store import RunFolder

        phases.drive(RunFolder(Path(root)))

    @task(execution_timeout=timedelta(minutes=10))
    def collect_and_stop(root: str) -> str:
        from harness import phases
        from harness.store import RunFolder

        folder = RunFolder(Path(root))
        try:
            phases.collect(folder)
        finally:
            phases.stop(folder)
        return root

    @task(execution_timeout=JUDGE_TIMEOUT, trigger_rule="all_done")
    def judge(root: str) -> str:
        from harness import phases
        from harness.store import RunFolder

        phases.judge(RunFolder(Path(root)))
        return root

    @task(execution_timeout=timedelta(minutes=10))
    def report(root: str) -> dict[str, str]:
        from harness import phases
        from harness.result import RunResult
        from harness.store import RunFolder
        from harness.verdict import ExitCode

        folder = RunFolder(Path(root))
        phases.report(folder)
        verdicts = RunResult.load(folder.verdict).verdicts
        if verdicts.exit_code is ExitCode.VIOLATED:
            raise AirflowFailException(f"the system broke a promise: see {folder.report}")
        if verdicts.exit_code is not ExitCode.HELD:
            raise InconclusiveError(f"the run proved nothing: see {folder.report}")
        return {
            "run": root,
            "fault": verdicts.fault.name,
            "system": verdicts.system.name,
            "environment": verdicts.environment.name,
        }

    # Airflow's own types do not follow a task's result through as_setup() and as_teardown().
    started: Any = start().as_setup()
    driven = drive(started)
    stopped: Any = collect_and_stop(started).as_teardown(setups=started, on_failure_fail_dagrun=True)
    driven >> stopped
    judged: Any = judge(stopped)
    driven >> judged
    return report(judged)
