"""The phases of a run as Airflow tasks: each takes the run folder's path, and nothing else passes between them."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import XComArg, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from kafka_chaos.airflow.request import Request, load, request_of
from kafka_chaos.airflow.settings import local_runs_folder

JUDGE_TIMEOUT = timedelta(minutes=30)


class InconclusiveError(AirflowException):
    """The run proved nothing; unlike a violation, it may be tried again."""


def run_phases(
    request: Any = None,
    *,
    asked: Callable[[Mapping[str, Any]], Request] = request_of,
    drive_timeout: timedelta = timedelta(hours=2),
) -> XComArg:
    """Add the tasks of one run to the current DAG or task group, and return what its last task returns.

        start (setup) → drive → collect_and_stop (teardown) → judge → expectations → report

    Args:
        request: A `Request`, or what becomes one when the task runs, such as the result of a task or the argument of a
            mapped task group. None: the parameters of the DAG run say it, as `asked` reads them, within `start`.
        asked: Turns the parameters of the DAG run into a request; raises ScenarioError when that cannot be done.
        drive_timeout: Longest time under load and faults; a scenario that could need more is refused.
    """

    @task(execution_timeout=timedelta(minutes=5))
    def start(request: Request | None = None, params: dict[str, Any] | None = None) -> str:
        from harness import phases

        request = request or asked(params or {})
        folder = phases.create_from(load(request), request.get("seed"), local_runs_folder())
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
    started: Any = start(request).as_setup()
    driven = drive(started)
    stopped: Any = collect_and_stop(started).as_teardown(setups=started, on_failure_fail_dagrun=True)
    driven >> stopped
    judged: Any = judge(stopped)
    driven >> judged
    return report(judged)
