"""Which Airflow tasks carry out a run, and how does each end? Only the run folder's path passes between them.

    start (setup) → drive → collect_and_stop (teardown) → judge → expectations → report

How a task ends, and what then becomes of the run (Airflow 3.3):

- It takes too long: `execution_timeout` is an alarm, which the phases hold like a signal: faults are healed, then the
  task fails.
- Marked or cleared by hand, or its DAG run: the worker learns of it with its next heartbeat, sends SIGTERM, and kills
  five seconds later. `on_kill` would add nothing: the phases hold SIGTERM themselves, and what is not healed in that
  time, or after a SIGKILL, `collect_and_stop` heals from the journal. Airflow may begin it before the old process is
  gone; the phase `collect` ends that process first.
- `drive` fails in any way: the teardown runs, and the evidence so far is judged.
- The DAG run is marked by hand: everything is skipped but teardowns. Therefore `report` is one too, of no setup: the
  run gets its page, and the DAG run the state that this task has. Otherwise Airflow would call it a success, because
  its last task was skipped.
- `start` fails: it has stopped what it started; before it is done the cluster belongs to its process and ends with it.
  Nothing else runs: `judge`, `expectations` and `report` are skipped, and `drive`, upstream_failed, has the DAG run
  fail. For that, `drive` is a leaf in Airflow's sense: only a teardown that cannot fail the DAG run follows it. What
  that teardown leaves behind fails `report`.
- The DAG run is cleared: the teardown is cleared too, so the next try of `start` stops the cluster that an earlier try
  of the same task left, and makes a run folder of its own.
- `dagrun_timeout` would skip the teardown, so no DAG has one; each task has a limit instead.

Only `start` is tried again, and the teardown when its worker was killed: a second try of any other phase would not fill
a hole in the evidence. The teardown raises only what a second try would not change.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import PokeReturnValue, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from chaos_airflow.links import ChaosRunLink
from chaos_airflow.settings import local_runs_folder
from chaos_airflow.tasks.request import RunRequest, request_of
from chaos_airflow.verdicts import PROBLEM_KEY, Problem, raise_unless
from harness.report.conclusion import REFUSED, Conclusion, concluded, expected, sentence
from harness.verdict import BROKEN, WRONG

if TYPE_CHECKING:
    from airflow.sdk import Context

    from harness.store.folder import RunFolder

log = logging.getLogger(__name__)

POOL = "chaos"
"""One slot: the machine that clusters run on."""
POKE_INTERVAL_S = 5.0
LONGEST_WAIT = timedelta(hours=12)
START_TIMEOUT = timedelta(minutes=5)
COLLECT_TIMEOUT = timedelta(minutes=10)
JUDGE_TIMEOUT = timedelta(minutes=30)
REPORT_TIMEOUT = timedelta(minutes=10)
TRY_AGAIN_AFTER = timedelta(seconds=15)
NOISY_LOGGERS = ("kazoo", "docker", "urllib3", "py4j", "great_expectations", "matplotlib")
"""Below a warning, their messages are not about the run."""
RUN_NAME = "run_name"
"""Where a task leaves the name of its run for `map_index_template`."""
IF_IT_RAN = "none_skipped"
"""However the tasks before ended, unless they were skipped because nothing was started. Airflow's rules that want one
success or one end would say the same, but skip all tasks of a mapped task group before that is expanded."""

# Deeper tasks first: a run that has begun goes on before another one begins. `retries` also where the installation's
# default is another: a fault schedule is not to be carried out twice in one run. A task that is cleared while it runs
# waits for its retry_delay all the same, five minutes unless one is given.
_COMMON: dict[str, Any] = {"pool": POOL, "weight_rule": "upstream", "retries": 0, "retry_delay": TRY_AGAIN_AFTER}


def run_phases(
    request: Any = None,
    *,
    request_from: Callable[[Mapping[str, Any]], RunRequest] = request_of,
    drive_timeout: timedelta = timedelta(hours=2),
) -> tuple[Any, Any]:
    """Add the tasks of one run to the current DAG or task group, and return its leaves: `drive` and `report`.

    Args:
        request: A `RunRequest`, or what becomes one when the task runs, such as the result of a task or the argument of
            a mapped task group. None: `request_from` makes it of the parameters of the DAG run, within `start`.
        request_from: Turns the parameters of the DAG run into a request; raises ScenarioError when that cannot be done.
        drive_timeout: Longest time under load and faults; a scenario that could need more is refused.
    """

    @task.sensor(
        mode="reschedule",
        poke_interval=POKE_INTERVAL_S,
        timeout=LONGEST_WAIT.total_seconds(),
        execution_timeout=START_TIMEOUT,
        **_COMMON | {"retries": 1},
    )
    def start(request: RunRequest | None = None) -> PokeReturnValue:
        _silence_libraries()
        context = get_current_context()
        with _problem_noted(context):
            from chaos_airflow.tasks.starting import begin

            this_request = request or request_from(context["params"])
            _show_name(run_name(this_request["scenario"], this_request.get("driver"), this_request.get("seed")))
            folder = begin(this_request, local_runs_folder(), context, drive_timeout=drive_timeout)
        if folder is None:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=str(_run_folder(str(folder.root)).root))

    @task(execution_timeout=drive_timeout, **_COMMON)
    def drive(root: str) -> None:
        from harness import phases

        phases.drive(_run_folder(root))

    @task(execution_timeout=COLLECT_TIMEOUT, **_COMMON | {"retries": 1})
    def collect_and_stop(root: str) -> None:
        from harness import phases
        from harness.errors import HarnessError

        folder = _run_folder(root)
        try:
            phases.collect(folder)
        except HarnessError as error:  # it is in the phase log, and what there is of evidence is judged
            log.error("not all evidence could be collected: %s", error)
        finally:
            residue = phases.stop(folder).residue
        if residue:
            raise AirflowFailException(f"something is left: {'; '.join(residue)}")

    @task(execution_timeout=JUDGE_TIMEOUT, trigger_rule=IF_IT_RAN, **_COMMON)
    def judge() -> None:
        from harness import phases

        phases.judge(_run_folder(_started_root()))

    @task(execution_timeout=JUDGE_TIMEOUT, **_COMMON)
    def expectations() -> None:
        from harness import phases

        phases.expectations(_run_folder(_started_root()))

    @task(execution_timeout=REPORT_TIMEOUT, **_COMMON)
    def report(request: RunRequest | None = None) -> Conclusion:
        from chaos_airflow.runs import publish
        from harness import phases
        from harness.scenario.file import scenario_of

        folder = _run_folder(_started_root())
        phases.report(folder)
        publish(folder.root)
        conclusion = concluded(folder)
        log.info("%s", sentence(conclusion))
        planted = scenario_of(folder).planted_bugs
        raise_unless((request.get("expect") if request else None) or expected(planted), conclusion)
        return conclusion

    # Airflow's own types do not follow a task's result through as_setup() and as_teardown(). What follows a setup
    # directly must not run after its failure, so the judging tasks look for its result by themselves.
    started: Any = start(request).as_setup()
    driven = drive(started)
    stopped: Any = collect_and_stop(started).as_teardown(setups=started)
    judged, suites = judge(), expectations()
    reported: Any = report(request).as_teardown(on_failure_fail_dagrun=True)
    driven >> stopped >> judged >> suites
    [stopped, judged, suites] >> reported
    steps: tuple[Any, ...] = (started, driven, stopped, judged, suites, reported)
    for step in steps:
        step.operator.operator_extra_links = (ChaosRunLink(),)
    return driven, reported


@contextmanager
def _problem_noted(context: "Context") -> Iterator[None]:
    """Leave in XCom why nothing is started, and turn the error into Airflow's own.

    Raises:
        AirflowSkipException: it cannot be done here.
        AirflowFailException: the request is wrong, so another try would be no better.
    """
    from harness.errors import HarnessError, Interrupted, PluginError, Refused, ScenarioError

    def note(outcome: str, error: HarnessError) -> None:
        context["ti"].xcom_push(PROBLEM_KEY, dict(Problem(outcome=outcome, reason=str(error))))

    try:
        yield
    except Refused as error:
        note(REFUSED, error)
        raise AirflowSkipException(f"refused: {error}") from error
    except (ScenarioError, PluginError) as error:
        note(WRONG, error)
        log.error("%s", error)
        raise AirflowFailException(str(error)) from None
    except Interrupted:  # the task is being stopped, and its XCom is not read
        raise
    except HarnessError as error:
        note(BROKEN, error)
        raise


def _started_root() -> str:
    """Return the run folder that the task `start` of the same run has made.

    Raises:
        AirflowSkipException: it has made none, and has said why.
        AirflowFailException: it was stopped before it could say so.
    """
    ti: Any = get_current_context()["ti"]
    group, dot, _ = ti.task_id.rpartition(".")
    start = {"task_ids": f"{group}{dot}start", "map_indexes": ti.map_index}
    root: str | None = ti.xcom_pull(**start)
    if root is None:
        problem: Problem | None = ti.xcom_pull(**start, key=PROBLEM_KEY)
        if problem is not None:
            raise AirflowSkipException("nothing was started: the log of start says why")
        raise AirflowFailException("start was stopped before it had started anything")
    return root


def _run_folder(root: str) -> "RunFolder":
    """Return the run of this task, which takes the run's name in the grid; libraries fall silent."""
    from chaos_airflow.tasks.connections import owned
    from harness.scenario.file import scenario_of
    from harness.scenario.plan import load_plan
    from harness.store.folder import RunFolder

    _silence_libraries()
    folder = RunFolder(Path(root))
    scenario = scenario_of(folder)
    _show_name(run_name(scenario.name, scenario.driver, load_plan(folder.plan).seed))
    owned(scenario)  # its credentials; whether it may be disturbed was asked at the start
    return folder


def _show_name(name: str) -> None:
    context: Any = get_current_context()
    context[RUN_NAME] = name


def run_name(scenario: str, driver: str | None, seed: int | None) -> str:
    """Return how a run is called where Airflow would show a map index; what is not decided yet is left out."""
    return " · ".join(filter(None, (Path(scenario).stem, driver, None if seed is None else f"seed {seed}")))


def _silence_libraries() -> None:
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
