import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from expectations import runner
from harness import phases
from harness.analysis import judge
from harness.analysis.engine import session
from harness.analysis.judge import Judgement
from harness.contracts.faults import Injection
from harness.errors import ClusterError, HarnessError, Interrupted, ScenarioError
from harness.judging import judge as judging
from harness.judging.assessment import Checked, within_holes
from harness.judging.needs import answerable
from harness.progress import Logged, Silent
from harness.report import page
from harness.run import run as recorded
from harness.run.holes import holes_in, missing_evidence
from harness.run.journal import Journal
from harness.run.run import Run
from harness.run.settings import settings_of
from harness.scenario.file import read_scenario
from harness.scenario.model import Scenario
from harness.scenario.plan import make_plan
from harness.store.coverage import Coverage
from harness.store.folder import RunFolder
from harness.store.history import InjectionStep
from harness.store.phase_log import Phase, PhaseNotes
from harness.store.result import CheckResult, Remark, RunResult, SuiteResult, forbidding
from harness.store.seal import Hole
from harness.system.interruption import Background
from harness.verdict import EnvironmentVerdict, ExitCode, FaultVerdict, SystemVerdict
from tests.fake_cluster import FakeCluster
from tests.raising import raising
from tests.simulation.scenarios import scenario
from tests.verdicts import FAIL

SCENARIO = """\
name: short
description: One fault
topics: [{name: orders, partitions: 1}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1}}]
faults: [{kind: kill, at_s: 1, target: "1"}]
"""
ALL = ["drive", "collect", "judge", "expectations", "report"]
PASSED = CheckResult(check="I1", promise="p", verdict=SystemVerdict.PASS)
EXPECTED = SuiteResult(suite="leader epochs", verdict=SystemVerdict.PASS, evaluated=2, unsuccessful=0)
FAILED = CheckResult(check="I1", promise="p", verdict=FAIL, violations=1, reason="two leaders")


class Stage:
    """The phases over a fake cluster; drive, collect, judge and report do what the test says."""

    def __init__(self, root: Path) -> None:
        self.scenario: Scenario = read_scenario(SCENARIO, "short.yaml")
        self.folder: RunFolder = phases.create(self.scenario, make_plan(self.scenario, 7), root)
        self.cluster = FakeCluster(root=self.folder.root)
        self.log: list[str] = []
        self.acts: dict[str, Callable[[], Any]] = {}
        self.answers = [PASSED]
        self.suites = [EXPECTED]
        self.drive_lasts_s = 0.0

    def act(self, phase: str) -> None:
        self.log.append(phase)
        self.acts.get(phase, lambda: None)()

    async def drive(self, run: Run, *_arguments: Any) -> None:
        journal = Journal(run.folder.journal)
        injection = Injection(fault="kill", targets=(1,))
        for step in (InjectionStep.INTENDED, InjectionStep.INJECTED, InjectionStep.CONFIRMED, InjectionStep.HEALED):
            journal.note(0, "kill", step, injection=injection)
        journal.close()
        self.act("drive")
        await asyncio.sleep(self.drive_lasts_s)

    async def collect(self, *_arguments: Any) -> None:
        self.act("collect")
        for _ in range(3):
            await asyncio.sleep(0)  # where a cancellation would strike

    def run_checks(self, *_arguments: Any) -> Checked:
        self.act("judge")
        return Checked(checks=self.answers, counts={"sends": 3})

    def run_suites(self, *_arguments: Any) -> list[SuiteResult]:
        self.act("expectations")
        return self.suites

    def write(self, run: Run, *, alone: bool) -> Path:
        self.act("report")
        run.folder.report.write_text("page")
        return run.folder.report

    def run(self) -> phases.Outcome:
        return phases.run(self.folder, owner_pid=os.getpid(), progress=Logged())

    @property
    def phase_errors(self) -> dict[str, str]:
        lines = [json.loads(line) for line in self.folder.phases.read_text().splitlines()]
        return {line["phase"]: line["error"] for line in lines if line["event"] == "ended"}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    made = Stage(tmp_path / "runs")
    monkeypatch.setattr(phases, "driver_of", lambda *_: made.cluster)
    monkeypatch.setattr(phases, "drive_cluster", made.drive)
    monkeypatch.setattr(phases, "collect_from", made.collect)
    monkeypatch.setattr(phases, "run_checks", made.run_checks)
    monkeypatch.setattr(phases, "run_suites", made.run_suites)
    monkeypatch.setattr(page, "write", made.write)
    return made


def signalled(times: int = 1) -> Callable[[], None]:
    def act() -> None:
        for _ in range(times):
            os.kill(os.getpid(), signal.SIGTERM)

    return act


def test_a_run_that_held(stage: Stage) -> None:
    outcome = stage.run()
    assert stage.log == ALL
    assert stage.cluster.calls == ["start 3", "stop"]
    verdicts = outcome.result.verdicts
    assert (verdicts.fault, verdicts.system) == (FaultVerdict.CONFIRMED, SystemVerdict.PASS)
    assert outcome.exit_code is ExitCode.HELD
    saved = RunResult.load(stage.folder.verdict)
    assert saved == outcome.result
    assert list(saved.phase_durations_s) == [phase.value for phase in Phase]
    assert saved.counts == {"sends": 3}
    assert saved.seed == 7


@pytest.mark.parametrize(
    ("acts", "answers", "code", "ran"),
    [
        pytest.param({}, [FAILED], ExitCode.VIOLATED, ALL, id="a broken promise"),
        pytest.param({}, [], ExitCode.INCONCLUSIVE, ALL, id="nothing was judged"),
        pytest.param({"drive": ClusterError("gone")}, [PASSED], ExitCode.ENVIRONMENT,
                     ALL, id="the cluster broke, what it did is judged"),
        pytest.param({"drive": ClusterError("gone")}, [FAILED], ExitCode.VIOLATED,
                     ALL, id="a violation outranks the broken cluster"),
        pytest.param({"collect": ClusterError("gone")}, [PASSED], ExitCode.ENVIRONMENT,
                     ALL, id="evidence could not be collected"),
        pytest.param({"drive": OSError("disk full")}, [PASSED], ExitCode.ENVIRONMENT,
                     ALL, id="a full disk"),
        pytest.param({"report": HarnessError("no space")}, [PASSED], ExitCode.HELD,
                     ALL, id="the report fails, the verdict stands"),
    ],
)  # fmt: skip
def test_whatever_fails_the_rest_is_done_and_the_cluster_stopped(
    stage: Stage, acts: dict[str, Exception], answers: list[CheckResult], code: ExitCode, ran: list[str]
) -> None:
    stage.acts = {phase: raising(error) for phase, error in acts.items()}
    stage.answers = answers
    outcome = stage.run()
    assert stage.log == ran
    assert stage.cluster.calls[-1] == "stop"
    assert outcome.exit_code is code
    assert json.loads(stage.folder.verdict.read_text())["exit_code"] == code
    assert [str(error) for error in outcome.errors] == [str(error) for error in acts.values()]


def test_a_bug_in_a_phase_leaves_no_cluster_up(stage: Stage) -> None:
    stage.acts = {"drive": raising(KeyError("bug"))}
    with pytest.raises(KeyError):
        stage.run()
    assert stage.cluster.calls == ["start 3", "stop"]


def test_a_result_that_cannot_be_saved_is_told_nevertheless(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunResult, "save", raising(OSError("disk full")))
    outcome = stage.run()
    assert stage.cluster.calls == ["start 3", "stop"]
    assert outcome.exit_code is ExitCode.ENVIRONMENT
    assert "disk full" in map(str, outcome.errors)


def test_a_run_folder_that_cannot_be_made_is_the_environments_fault(tmp_path: Path) -> None:
    scenario = read_scenario(SCENARIO, "short.yaml")
    (tmp_path / "file").write_text("")
    with pytest.raises(ClusterError, match="no run folder can be made in"):
        phases.create(scenario, make_plan(scenario, 7), tmp_path / "file" / "runs")


def test_a_cluster_that_does_not_start_is_stopped_and_nothing_else_is_done(stage: Stage) -> None:
    stage.cluster.broken = {"start"}
    outcome = stage.run()
    assert stage.log == []
    assert stage.cluster.calls == ["start 3", "stop"]
    assert outcome.exit_code is ExitCode.ENVIRONMENT
    assert RunResult.load(stage.folder.verdict).exit_code is ExitCode.ENVIRONMENT
    assert outcome.result.verdicts.system is SystemVerdict.UNKNOWN


def test_what_is_left_behind_is_residue(stage: Stage) -> None:
    stage.cluster.left = ["process 12 still runs"]
    outcome = stage.run()
    assert outcome.result.verdicts.environment is EnvironmentVerdict.RESIDUE
    assert outcome.exit_code is ExitCode.ENVIRONMENT


def test_a_cluster_that_does_not_stop_is_residue_and_is_judged_nevertheless(stage: Stage) -> None:
    stage.cluster.broken = {"stop"}
    assert stage.run().result.residue == ["the cluster could not be stopped: stop is broken"]
    assert stage.log[-1] == "report"


@pytest.mark.parametrize(
    ("phase", "times", "ran"),
    [
        pytest.param("drive", 1, ALL, id="once in drive: judged as far as it goes"),
        pytest.param("drive", 2, ["drive"], id="twice in drive: stopped at once"),
        pytest.param("collect", 1, ALL, id="once in collect: it goes on"),
        pytest.param("judge", 1, ["drive", "collect", "judge"], id="once in judge: that is all"),
        pytest.param("expectations", 1, ALL[:-1], id="once in expectations: that is all, and no pass"),
    ],
)
def test_signals_end_a_run_in_good_order(
    stage: Stage, phase: str, times: int, ran: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    stage.drive_lasts_s = 10.0 if phase == "drive" else 0.0
    stage.acts = {phase: signalled(times)}
    before = signal.getsignal(signal.SIGTERM)
    outcome = stage.run()
    assert signal.getsignal(signal.SIGTERM) is before
    assert stage.log == ran
    assert stage.cluster.calls == ["start 3", "stop"]
    assert ("interrupt again" in caplog.text) == (times == 1 and phase in ("drive", "collect"))
    if phase == "collect":
        assert stage.phase_errors["collect"] == ""
    else:
        assert outcome.exit_code is ExitCode.INCONCLUSIVE
        assert isinstance(outcome.errors[0], Interrupted)
        assert f"the phase {phase} was interrupted" in map(str, outcome.result.remarks)


def test_a_phase_alone_raises_what_went_wrong_and_writes_it_down(stage: Stage) -> None:
    stage.acts = {"drive": raising(ClusterError("gone"))}
    phases.start(stage.folder)
    with pytest.raises(ClusterError, match="gone"):
        phases.drive(stage.folder)
    phases.collect(stage.folder)
    phases.stop(stage.folder)
    assert stage.phase_errors == {"start": "", "drive": "gone", "collect": "", "stop": ""}
    result = phases.judge(stage.folder)
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert list(map(str, result.remarks)) == ["no suite of expectations has answered", "the phase drive failed: gone"]


def test_nothing_passes_before_the_expectations_have_answered_too(stage: Stage) -> None:
    stage.run()
    first = phases.judge(stage.folder)
    assert first.suites == []
    assert (first.verdicts.system, list(map(str, first.remarks))) == (
        SystemVerdict.UNKNOWN,
        ["no suite of expectations has answered"],
    )
    second = phases.expectations(stage.folder)
    assert second.suites == [EXPECTED]
    assert second.checks == [PASSED]
    assert (second.verdicts.system, second.remarks) == (SystemVerdict.PASS, [])
    assert RunResult.load(stage.folder.verdict) == second


def test_judging_again_replaces_the_answers_and_keeps_the_rest(stage: Stage) -> None:
    stage.run()
    stage.answers = [FAILED]
    result = phases.judge(stage.folder)
    assert result.verdicts.exit_code is ExitCode.VIOLATED
    assert result.faults[0].verdict is FaultVerdict.CONFIRMED
    assert RunResult.load(stage.folder.verdict).checks == [FAILED]


def test_what_a_run_tried_is_counted_when_it_ends_or_is_judged_for_the_first_time_since(stage: Stage) -> None:
    stage.run()
    counted = Coverage.load(stage.folder.coverage)
    assert counted is not None
    assert {(each.fault, each.confirmed) for each in counted.injected} == {("kill", 1)}
    stage.folder.coverage.unlink()
    phases.judge(stage.folder)
    assert Coverage.load(stage.folder.coverage) == counted


def intended(fault: str, target: str = "1") -> str:
    return f'{{"injection":5,"time_ns":1,"step":"intended","fault":"{fault}","targets":["{target}"],"state":{{}}}}'


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param("brokers/1/state-change.jsonl", '{"ev":"broker_stop","mono":1e999}', id="an endless instant"),
        pytest.param("brokers/1/state-change.jsonl", f'{{"ev":"election","x":{DEEP}', id="lists without an end"),
        pytest.param("brokers/1/state-change.jsonl", f'{{"ev":"fenced","error":{"7" * 5000}}}', id="a long error"),
        pytest.param("journal.jsonl", '{"injection":5,"time_ns":1e999}', id="an injection without an instant"),
        pytest.param("journal.jsonl", f'{{"injection":{DEEP}', id="a journal of lists without an end"),
        pytest.param("journal.jsonl", intended("\\ud800"), id="a fault with an unwritable name"),
        pytest.param("journal.jsonl", intended("kill", "7" * 5000), id="a broker with a long number"),
    ],
)
def test_no_line_costs_a_run_its_answers(stage: Stage, name: str, line: str) -> None:
    path = stage.folder.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    stage.acts["collect"] = lambda: path.write_text(f"{line}\n", encoding="utf-8")
    assert stage.run().result.checks == [PASSED]
    stage.folder.coverage.unlink(missing_ok=True)
    stage.folder.verdict.unlink()
    for phase in (phases.stop, phases.judge):
        phase(stage.folder)
        assert RunResult.load(stage.folder.verdict).run_id == stage.folder.run_id


def test_two_runs_at_the_same_second_have_folders_of_their_own(tmp_path: Path) -> None:
    scenario = read_scenario(SCENARIO, "short.yaml")
    plan = make_plan(scenario, 10)
    folders = {phases.create(scenario, plan, tmp_path).run_id for _ in range(3)}
    assert len(folders) == 3
    assert all(run_id.startswith("short-") and "-0000000a" in run_id for run_id in folders)


def test_a_run_folder_that_was_tampered_with_is_refused(stage: Stage) -> None:
    stage.folder.scenario.write_text("name: x\n")
    with pytest.raises(ScenarioError, match="topics: missing"):
        phases.drive(stage.folder)


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        pytest.param({}, (frozenset({-1}), 1, 1, False), id="Kafka's defaults"),
        pytest.param(
            {"partitions: 1": "partitions: 1, config: {min.insync.replicas: 2, unclean.leader.election.enable: true}"},
            (frozenset({-1}), 2, 1, True),
            id="a topic's own",
        ),
        pytest.param(
            {"topics:": "cluster: {properties: {min.insync.replicas: 3}}\ntopics:", "producers: 1": "acks: [0, 1]"},
            (frozenset({0, 1}), 3, 3, False),
            id="the brokers', and weak acks",
        ),
        pytest.param(
            {"kill, at_s: 1": "change-config, at_s: 1, parameters: {config: {min.insync.replicas: '1'}}"},
            (frozenset({-1}), 1, 0, False),
            id="a fault changes the brokers'",
        ),
        pytest.param(
            {
                "topics:": "cluster: {properties: {unclean.leader.election.enable: true}}\ntopics:",
                "partitions: 1": "partitions: 1, config: {unclean.leader.election.enable: false}",
            },
            (frozenset({-1}), 1, 1, True),
            id="Kafka's own topics take the brokers' value",
        ),
    ],
)
def test_what_a_run_was_allowed_to_do(changes: dict[str, str], settings: tuple[frozenset[int], int, int, bool]) -> None:
    text = SCENARIO
    for old, new in changes.items():
        text = text.replace(old, new)
    scenario = read_scenario(text, "x")
    settings_of_run = settings_of(scenario, make_plan(scenario, 1))
    assert (
        settings_of_run.acks,
        settings_of_run.min_insync_replicas,
        settings_of_run.broker_min_insync_replicas,
        settings_of_run.unclean_leader_election,
    ) == settings


@pytest.mark.parametrize(
    ("changes", "producers_expire"),
    [
        pytest.param({}, False, id="Kafka's default is a day"),
        pytest.param(
            {"topics:": "cluster: {properties: {producer.id.expiration.ms: 300}}\ntopics:"}, True, id="the brokers'"
        ),
        pytest.param(
            {"kill, at_s: 1": "change-config, at_s: 1, parameters: {config: {producer.id.expiration.ms: '300'}}"},
            True,
            id="a fault changes the brokers'",
        ),
        pytest.param(
            {"kill, at_s: 1": "clock, at_s: 1, duration_s: 3, parameters: {step_s: -86400}"},
            True,
            id="a clock is set back by a day, and then ahead",
        ),
        pytest.param(
            {"kill, at_s: 1": "clock, at_s: 1, duration_s: 3, parameters: {step_s: 3600}"},
            False,
            id="a clock is set ahead by an hour",
        ),
    ],
)
def test_whether_a_producer_can_be_idle_for_so_long_that_it_is_forgotten(
    changes: dict[str, str], producers_expire: bool
) -> None:
    text = SCENARIO
    for old, new in changes.items():
        text = text.replace(old, new)
    scenario = read_scenario(text, "x")
    assert settings_of(scenario, make_plan(scenario, 1)).producers_expire is producers_expire


def test_an_existing_cluster_may_have_forgotten_producers_before_the_run() -> None:
    scenario = read_scenario(SCENARIO, "x")
    plan = make_plan(scenario, 1)
    assert settings_of(scenario.model_copy(update={"system": "external"}), plan).producers_expire


@pytest.mark.parametrize(
    ("loads", "idempotence"),
    [
        pytest.param("{}", False, id="by default"),
        pytest.param("{idempotence: true, acks: all}", True, id="all producers are idempotent"),
        pytest.param("{idempotence: true, acks: all}, {producers: 1}", False, id="one of two loads is not"),
        pytest.param("{idempotence: true, acks: all}, {producers: 0}", True, id="the load that is not has no producer"),
    ],
)
def test_retries_may_be_written_twice_unless_every_producer_is_idempotent(loads: str, idempotence: bool) -> None:
    workloads = loads.replace("{", "{kind: produce-consume, parameters: {").replace("}", "}}")
    text = re.sub(r"^workloads:.*$", f"workloads: [{workloads}]", SCENARIO, flags=re.MULTILINE)
    scenario = read_scenario(text, "x")
    assert settings_of(scenario, make_plan(scenario, 1)).idempotence is idempotence


@pytest.mark.parametrize(
    ("checks", "suites", "remarks"),
    [
        pytest.param(RuntimeError("boom"), ["suite"], ["the checks could not judge: RuntimeError: boom"], id="checks"),
        pytest.param(["check"], ClusterError("x"), ["the suites could not judge: x"], id="suites"),
        pytest.param(["check"], [], ["the suites gave no answer"], id="silence"),
        pytest.param(["check"], ["suite"], [], id="neither"),
    ],
)
def test_a_judge_that_breaks_loses_nothing_and_is_no_pass(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, checks: Any, suites: Any, remarks: list[str]
) -> None:
    def judge(*_arguments: Any, **_named: Any) -> Judgement:
        if isinstance(checks, Exception):
            raise checks
        torn = Remark(text="1 torn line", subject="operations/a.jsonl")
        return Judgement(run_id="r", checks=checks, remarks=[torn], counts={"sends": 1})

    def run(*_arguments: Any) -> Any:
        if isinstance(suites, Exception):
            raise suites
        return suites

    monkeypatch.setattr(session, "spark_session", lambda **_: nullcontext())
    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(recorded, "holes_in", lambda *_: [])
    notes = PhaseNotes()
    with ExitStack() as stack:
        answers = judging.run_checks(Run.load(stage.folder), Silent(), notes, stack, judge).checks
        expected = judging.run_suites(Run.load(stage.folder), Silent(), notes)
    assert [*answers, *expected] == [
        *(checks if isinstance(checks, list) else []),
        *(suites if isinstance(suites, list) else []),
    ]
    assert [str(doubt) for doubt in forbidding(notes.remarks)] == remarks
    assert "operations/a.jsonl: 1 torn line" in map(str, notes.remarks) or isinstance(checks, Exception)


def test_checks_and_suites_share_one_spark_session(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def opened(**_: Any) -> Iterator[None]:
        stage.log.append("opened")
        yield
        stage.log.append("closed")

    def judged(*_arguments: Any) -> Judgement:
        stage.log.append("checks")
        return Judgement(run_id="r", checks=[PASSED], remarks=[], counts={})

    def run(*_arguments: Any) -> list[SuiteResult]:
        stage.log.append("suites")
        return [EXPECTED]

    monkeypatch.setattr(session, "spark_session", opened)
    monkeypatch.setattr(judge, "judge", judged)
    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(phases, "run_checks", judging.run_checks)
    monkeypatch.setattr(phases, "run_suites", judging.run_suites)
    with Background() as thread:
        phases.judge(stage.folder, background=thread)
        phases.expectations(stage.folder, background=thread)
    assert stage.log == ["opened", "checks", "suites", "closed"]
    stage.log.clear()
    phases.judge(stage.folder)
    assert stage.log == ["opened", "checks", "closed"]


def test_evidence_that_a_run_should_have_left_is_missed(stage: Stage) -> None:
    plan = make_plan(stage.scenario, 7)
    folder = stage.folder
    files = [folder.journal, folder.zookeeper, *(folder.operations_of(client.process) for client in plan.clients)]
    for path in [*files, *map(folder.state_change_log, range(3))]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")
    assert missing_evidence(folder, stage.scenario, plan) == []
    folder.state_change_log(2).unlink()
    folder.zookeeper.write_text("")
    missing = missing_evidence(folder, stage.scenario, plan)
    assert [hole.place for hole in missing] == ["zookeeper.jsonl", "brokers/2/state-change.jsonl"]


UNKNOWN = SystemVerdict.UNKNOWN


COMPACTED = {"topics": [{"name": "orders", "config": {"cleanup.policy": "compact"}}]}
CLEANED = {"cluster": {"properties": {"log.cleaner.backoff.ms": 9}}}


@pytest.mark.parametrize(
    ("changed", "kind", "by_check"),
    [
        pytest.param({}, None, {"I1": FAIL, "phantom": FAIL, "I9": SystemVerdict.PASS}, id="nothing is damaged"),
        pytest.param(
            {}, "state_changes", {"I1": UNKNOWN, "phantom": FAIL, "I9": SystemVerdict.PASS}, id="a broker's log"
        ),
        pytest.param(
            COMPACTED,
            "state_changes",
            {"I1": UNKNOWN, "phantom": FAIL, "I9": UNKNOWN},
            id="a broker's log, which might have what cleaners removed",
        ),
        pytest.param(
            CLEANED,
            "operations",
            {"I1": FAIL, "phantom": UNKNOWN, "I9": UNKNOWN},
            id="a client's operations, of which cleaners may have taken some",
        ),
        pytest.param(
            {}, "operations", {"I1": FAIL, "phantom": UNKNOWN, "I9": SystemVerdict.PASS}, id="a client's operations"
        ),
        pytest.param({}, "", dict.fromkeys(("I1", "phantom", "I9"), UNKNOWN), id="the plan"),
    ],
)
def test_a_check_that_rests_on_damaged_evidence_accuses_nobody_and_passes_nothing(
    changed: dict[str, Any], kind: str | None, by_check: dict[str, SystemVerdict]
) -> None:
    verdicts = {"I1": FAIL, "phantom": FAIL, "I9": SystemVerdict.PASS}
    checks = [CheckResult(check=name, promise="p", verdict=verdict, violations=1) for name, verdict in verdicts.items()]
    holes = [] if kind is None else [Hole(place="a/b.jsonl", kind=kind, text="it is missing")]
    results = within_holes(checks, holes, answerable(scenario(**changed)).evidence)
    assert {result.check: result.verdict for result in results} == by_check
    for result in results:
        if result.verdict is UNKNOWN:
            reason = "1 violation found in evidence that cannot be relied on: a/b.jsonl: it is missing"
            assert (result.violations, result.reason) == (0, reason)


def test_what_a_killed_writer_had_still_to_say_takes_no_answer_away() -> None:
    checks = [CheckResult(check="phantom", promise="p", verdict=FAIL, violations=1)]
    hole = Hole(place="operations/a.jsonl", kind="operations", text="its writer was killed", is_open_end=True)
    assert within_holes(checks, [hole], answerable(scenario()).evidence) == checks


def test_a_journal_that_cannot_be_read_makes_the_run_unknown(stage: Stage) -> None:
    stage.run()
    stage.folder.journal.write_text("rubbish\n" + stage.folder.journal.read_text())
    result = phases.judge(stage.folder)
    assert (result.verdicts.fault, result.verdicts.system) == (FaultVerdict.INCONCLUSIVE, SystemVerdict.UNKNOWN)
    assert "journal.jsonl:1: not a JSON object" in result.remarks[0].text
    assert "its outcome is not known" in result.faults[0].detail


def test_a_fault_that_was_confirmed_stays_so_where_later_lines_of_the_journal_are_damaged(stage: Stage) -> None:
    stage.run()
    with stage.folder.journal.open("a") as journal:
        journal.write('{"time_ns": 1, "inj{"time_ns": 2}\n')
    result = phases.judge(stage.folder)
    assert (result.verdicts.fault, result.verdicts.system) == (FaultVerdict.CONFIRMED, SystemVerdict.UNKNOWN)


def test_sealed_evidence_is_not_collected_again(stage: Stage) -> None:
    for phase in (phases.start, phases.drive, phases.collect, phases.stop, phases.collect, phases.stop):
        phase(stage.folder)
    assert stage.log == ["drive", "collect"]
    assert holes_in(stage.folder, stage.scenario, make_plan(stage.scenario, 7)) == missing_evidence(
        stage.folder, stage.scenario, make_plan(stage.scenario, 7)
    )


def test_no_room_is_kept_once_the_report_is_written_or_has_failed(stage: Stage) -> None:
    assert stage.folder.reserve.is_dir()
    stage.acts = {"report": raising(HarnessError("no space"))}
    stage.run()
    assert not stage.folder.reserve.exists()
