"""Sweeps in Spark: executors simulate, and the checks judge all schedules at once as they judge one run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from harness.analysis.sources.reading import from_table, read
from harness.analysis.sources.typed import TYPED
from harness.cli.simulate import rejudge
from harness.progress import Silent
from harness.scenario.file import load_scenario, scenario_yaml
from harness.scenario.plan import make_plan
from harness.scenario.source import options
from harness.simulation.schedule import simulate as simulate_one
from harness.store.coverage import Coverage
from harness.sweep.executor import SimulatedSchedule, simulate_share
from harness.sweep.jobs import (
    HISTORIES,
    SHARE,
    batches,
    covered,
    features_in,
    judge,
    judge_candidates,
    judge_histories,
    patient,
    simulate,
)
from harness.sweep.summary import Summary, summarize
from harness.sweep.sweep import TABLES, Candidate, ScheduleVerdict, Sweep, new_sweep, schedule_seed
from harness.verdict import ExitCode
from tests.analysis.run_folders import write_intact_run
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, scenario
from tests.sweep.losing import lost
from tests.verdicts import CONFIRMED, FAIL, PASS, UNKNOWN

pytestmark = [pytest.mark.spark, pytest.mark.jvm, pytest.mark.rotating(6)]

SCHEDULES = 3 * SHARE
"""Three shares: more than one for each core of a small machine."""
SOME = ["I1", "I10", "lost-write"]
"""All checks judge the sound broker of `test_planted_bugs.py`."""
Swept = tuple[Sweep, list[ScheduleVerdict], list[tuple[str, int, int]]]
TWO_FAULTS = ({**KILL_LEADER, "duration_s": 3.0}, {**EXPIRE_CONTROLLER, "at_s": 6.5})


class Watched(Silent):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def done(self, what: str, schedules: int, of: int, violated: int = 0) -> None:
        self.seen.append((what, schedules, of))


@pytest.fixture(scope="module")
def swept(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A sweep of a scenario that must hold, and how it said to go on."""
    holds = scenario(*TWO_FAULTS, load={"rate_per_s": 16})
    sweep = Sweep(scenario=holds, seed=7, schedules=SCHEDULES, root=tmp_path_factory.mktemp("holds"))
    watched = Watched()
    simulate(spark, sweep, watched)
    return sweep, judge(spark, sweep, SOME, watched), watched.seen


def test_every_schedule_has_a_verdict_under_its_own_seed(
    swept: Swept,
) -> None:
    sweep, verdicts, _ = swept
    assert [verdict.number for verdict in verdicts] == list(range(SCHEDULES))
    assert [verdict.seed for verdict in verdicts] == [schedule_seed(7, number) for number in range(SCHEDULES)]
    assert [(verdict.system, verdict.fault, verdict.reasons) for verdict in verdicts] == [
        (PASS, CONFIRMED, [])
    ] * SCHEDULES
    assert len(sweep.verdicts.read_text().splitlines()) == SCHEDULES
    assert json.loads(sweep.verdicts.read_text().splitlines()[3])["seed"] == schedule_seed(7, 3)


def test_the_histories_are_those_of_the_seeds_in_any_process(
    swept: Swept,
) -> None:
    sweep, verdicts, _ = swept
    assert len({verdict.digest for verdict in verdicts}) == SCHEDULES
    for verdict in verdicts[:: SHARE + 1]:  # of each share, at another place
        assert verdict.digest == simulate_one(sweep.scenario, verdict.seed).digest()


def test_progress_goes_from_nothing_to_all(
    swept: Swept,
) -> None:
    _, _, seen = swept
    assert seen[0] == ("simulated", 0, SCHEDULES)
    assert ("simulated", SCHEDULES, SCHEDULES) in seen
    assert seen[-1] == ("judged", SCHEDULES, SCHEDULES)
    assert [done for what, done, _ in seen if what == "simulated"] == sorted(
        done for what, done, _ in seen if what == "simulated"
    )


def test_batches_cover_all_schedules_in_order_and_are_as_small_as_asked(spark: SparkSession, swept: Swept) -> None:
    sweep, _, _ = swept
    (whole,) = batches(sweep.histories)
    parts = batches(sweep.histories, batch_bytes=1)
    assert [row.number for part in parts for row in part.rows] == [row.number for row in whole.rows]
    assert len(parts) == len(whole.paths) == SCHEDULES // SHARE


def test_tables_in_a_folder_are_read_as_one(tmp_path: Path) -> None:
    for number in range(4):
        folder = tmp_path / f"{number // 2:04}.parquet"
        folder.mkdir(exist_ok=True)
        features = json.dumps({f"of {number}": 1.0})
        made = SimulatedSchedule(number=number, run_id=f"small-{number}", seed=number, features=features)
        table = pa.Table.from_pylist([made.row()], schema=to_arrow_schema(HISTORIES))
        parquet.write_table(table, folder / f"part-{number}.parquet")
    (batch,) = batches(tmp_path)
    assert [row.number for row in batch.rows] == [0, 1, 2, 3]
    assert features_in(tmp_path, [3, 5, 0]) == [{"of 3": 1.0}, {}, {"of 0": 1.0}]
    assert features_in(tmp_path / "0001.parquet", range(2, 4)) == [{"of 2": 1.0}, {"of 3": 1.0}]


def test_what_a_damaged_table_has_lost_is_not_taken_for_held(spark: SparkSession, tmp_path: Path) -> None:
    """Of its four files one is gone and one torn; of the others' schedules it is known what became of them."""
    sweep = Sweep(scenario=scenario(KILL_LEADER), seed=7, schedules=4, root=tmp_path)
    sweep.histories.mkdir()
    files = [sweep.histories / f"part-{number}.parquet" for number in range(4)]
    for number, file in enumerate(files):
        made = SimulatedSchedule(number=number, run_id=f"small-{number}", seed=number, error="SimulationError: stuck")
        parquet.write_table(pa.Table.from_pylist([made.row()], schema=to_arrow_schema(HISTORIES)), file)
    files[0].unlink()
    files[2].write_bytes(files[2].read_bytes()[:100])
    verdicts = judge(spark, sweep, [], Watched())
    assert [(verdict.number, verdict.error) for verdict in verdicts[:2]] == [
        (1, "SimulationError: stuck"),
        (3, "SimulationError: stuck"),
    ]
    assert [(verdict.number, verdict.seed, verdict.exit_code) for verdict in verdicts[2:]] == [
        (number, schedule_seed(7, number), ExitCode.INCONCLUSIVE) for number in (0, 2)
    ]
    assert len(sweep.verdicts.read_text().splitlines()) == 4
    candidates = [Candidate(scenario=sweep.scenario, plan=make_plan(sweep.scenario, seed)) for seed in range(4)]
    again = judge_histories(spark, sweep.histories, candidates, tmp_path / "again")
    assert [(verdict.number, verdict.seed, verdict.error) for verdict in again[:2]] == [
        (0, 0, "it is not in schedules.parquet, or cannot be read there"),
        (1, 1, "SimulationError: stuck"),
    ]
    assert len(again) == 4


def test_what_was_tried_is_added_up_over_all_that_can_be_read(spark: SparkSession, tmp_path: Path) -> None:
    sweep = Sweep(scenario=scenario(KILL_LEADER), seed=7, schedules=4, root=tmp_path)
    sweep.histories.mkdir()
    counted = Coverage(errors={"Fetch": {"NOT_LEADER": 2}}).model_dump_json()
    for number, coverage in enumerate([counted, counted, counted, ""]):
        made = SimulatedSchedule(number=number, run_id=f"small-{number}", seed=number, error="stuck", coverage=coverage)
        table = pa.Table.from_pylist([made.row()], schema=to_arrow_schema(HISTORIES))
        parquet.write_table(table, sweep.histories / f"part-{number}.parquet")
    (sweep.histories / "part-1.parquet").write_bytes(b"PAR1")
    earlier = sweep.histories / "part-3.parquet"
    parquet.write_table(parquet.read_table(earlier).drop_columns(["coverage"]), earlier)
    assert covered(sweep) == Coverage(runs=2, errors={"Fetch": {"NOT_LEADER": 4}})
    judge(spark, sweep, [], Watched())
    assert "NOT_LEADER" not in sweep.verdicts.read_text(), "the summary has the sum"
    for number in (0, 2):
        (sweep.histories / f"part-{number}.parquet").unlink()
    assert covered(sweep) is None


def test_one_batch_may_hold_a_bad_seed_a_broken_promise_and_a_sound_history(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without Python workers: the table is written here, and judging needs none."""
    sweep = Sweep(scenario=scenario(KILL_LEADER), seed=7, schedules=3, root=tmp_path)
    sound, losing = simulate_share(scenario_yaml(sweep.scenario), 7, range(2))
    broken = SimulatedSchedule(number=2, run_id="small-2", seed=schedule_seed(7, 2), error="SimulationError: no end")
    table = [sound.row(), lost(losing).row(), broken.row()]
    sweep.histories.mkdir()
    parquet.write_table(pa.Table.from_pylist(table, schema=to_arrow_schema(HISTORIES)), sweep.histories / "all.parquet")
    verdicts = judge(spark, sweep, ["lost-write", "I1"], Watched())
    assert [(each.system, each.error) for each in verdicts] == [
        (PASS, ""),
        (FAIL, ""),
        (UNKNOWN, "SimulationError: no end"),
    ]
    summary = summarize(replace(sweep, replay="chaos run small"), verdicts, simulated_s=1, judged_s=1)
    assert [(finding.what, finding.seeds) for finding in summary.violations] == [("lost-write", [losing.seed])]
    assert [(finding.what, finding.seeds) for finding in summary.doubts] == [("no history", [broken.seed])]
    assert summary.violations[0].replay == f"chaos run small --seed {losing.seed}"


def test_a_sweep_is_judged_again_from_its_folder_alone(spark: SparkSession, tmp_path: Path) -> None:
    sweep = new_sweep(scenario(KILL_LEADER, checks=["lost-write", "I1"]), 7, 2, tmp_path, "chaos run small")
    sound, losing = simulate_share(scenario_yaml(sweep.scenario), 7, range(2))
    table = pa.Table.from_pylist([sound.row(), lost(losing).row()], schema=to_arrow_schema(HISTORIES))
    sweep.histories.mkdir()
    parquet.write_table(table, sweep.histories / "all.parquet")
    (sweep.histories / "_SUCCESS").touch()
    summary = rejudge(sweep.root)
    assert (summary.schedules, summary.held, summary.violated) == (2, 1, 1)
    assert [(finding.what, finding.replay) for finding in summary.violations] == [
        ("lost-write", f"chaos run small --seed {losing.seed}")
    ]
    assert Summary.model_validate_json(sweep.summary.read_bytes()) == summary


def test_schedules_are_judged_by_their_lines_where_they_lack_tables(spark: SparkSession, swept: Swept) -> None:
    """Kept histories, and those of which some evidence is not in perfect order."""
    sweep, verdicts, _ = swept
    table = parquet.read_table(sweep.histories).slice(0, 3)
    packs = [dict(pack) for pack in table[TABLES].to_pylist()]
    packs[1] = {name: stream for name, stream in packs[1].items() if name not in TYPED["operations"]}
    packs[2] = {}
    folder = sweep.root / "kept"
    folder.mkdir()
    field, none = table.schema.field(TABLES), table.drop_columns([TABLES])
    some = none.append_column(field, pa.array([list(pack.items()) for pack in packs], field.type))
    declaration = sweep.scenario.model_copy(update={"checks": list(SOME)})
    candidates = [
        Candidate(scenario=declaration, plan=make_plan(declaration, seed)) for seed in table["seed"].to_pylist()
    ]
    for name, histories in {"some": some, "none": none}.items():
        parquet.write_table(histories, folder / f"{name}.parquet")
        (folder / name / "judged" / "0000" / "tables").mkdir(parents=True)  # as a judge that was killed leaves it
        assert judge_histories(spark, folder / f"{name}.parquet", candidates, folder / name) == verdicts[:3]


def test_the_table_reads_as_the_files_that_it_was_made_of(spark: SparkSession, tmp_path: Path) -> None:
    folder = write_intact_run(tmp_path / "intact")
    with folder.state_change_log(1).open("a", encoding="utf-8") as log:
        log.write('\n{"mono":1,"ev":"hw","seq":"not a number"}\nno json at all\n{"torn')
    row: dict[str, Any] = {"run_id": folder.run_id, "error": ""}
    row |= {
        kind: [(str(path.relative_to(folder.root)), path.read_text().splitlines()) for path in paths]
        for kind, paths in folder.evidence().items()
    }
    parquet.write_table(pa.Table.from_pylist([row], schema=to_arrow_schema(HISTORIES)), tmp_path / "table.parquet")
    table = spark.read.schema(HISTORIES).parquet(str(tmp_path / "table.parquet"))
    for kind, from_files in read(spark, [folder], tmp_path / "files").lines.items():
        tabled = from_table(table, 0, tmp_path / "table").lines[kind]
        assert tabled.schema.simpleString() == from_files.schema.simpleString()
        assert sorted(map(repr, tabled.cache().collect())) == sorted(map(repr, from_files.cache().collect()))


@pytest.mark.parametrize(
    ("master", "patiently"),
    [
        pytest.param(None, "local[*,4]", id="all cores of this machine by default"),
        pytest.param("local", "local[1,4]", id="one core"),
        pytest.param("local[2]", "local[2,4]", id="two cores"),
        pytest.param("local[2,1]", "local[2,1]", id="a stated number is obeyed"),
        pytest.param("spark://host:7077", "spark://host:7077", id="a cluster"),
    ],
)
def test_a_local_master_tries_a_lost_task_again(master: str | None, patiently: str) -> None:
    assert patient(master) == patiently


def test_a_planted_bug_is_found_with_its_seed(spark: SparkSession, tmp_path: Path) -> None:
    planted = load_scenario("acks-all-on-append", options(None, [], ["workloads.0.parameters.rate_per_s=50"]))
    sweep = Sweep(scenario=planted, seed=1, schedules=2, root=tmp_path)
    simulate(spark, sweep, Watched())
    verdicts = judge(spark, sweep, ["lost-write", "I10"], Watched())
    summary = summarize(sweep, verdicts, simulated_s=1, judged_s=1)
    assert "lost-write" in [finding.what for finding in summary.violations]
    assert summary.violations[0].seeds[0] in [schedule_seed(1, number) for number in range(2)]


def test_candidates_are_judged_together_each_under_its_own_settings(spark: SparkSession, tmp_path: Path) -> None:
    """A lost record is a violation under acks=all and expected under acks=1; a bad plan costs only itself."""
    asked_of = ["workloads.0.parameters.rate_per_s=50", "checks=[lost-write, unseen]"]
    strict = load_scenario("acks-all-on-append", options(None, [], asked_of))
    lenient = load_scenario("acks-all-on-append", options(None, [], [*asked_of, "workloads.0.parameters.acks=1"]))
    intact = scenario(KILL_LEADER, checks=["I1"])
    seed = schedule_seed(1, 0)
    broken = make_plan(intact, 3)
    broken = broken.model_copy(update={"faults": [broken.faults[0].model_copy(update={"fault": "no-such-fault"})]})
    cases = [(strict, make_plan(strict, seed)), (intact, broken), (lenient, make_plan(lenient, seed))]
    cases += [(intact, make_plan(intact, 4))]
    candidates = [Candidate(scenario=each, plan=plan) for each, plan in cases]
    verdicts = judge_candidates(spark, candidates, tmp_path)
    assert [(each.number, each.seed) for each in verdicts] == [(n, plan.seed) for n, (_, plan) in enumerate(cases)]
    assert [each.system for each in verdicts] == [
        FAIL,
        UNKNOWN,
        PASS,
        PASS,
    ]
    assert "no-such-fault" in verdicts[1].error
    assert [check.check for check in verdicts[3].checks] == ["I1"]
    assert judge_candidates(spark, [], tmp_path / "none") == []
