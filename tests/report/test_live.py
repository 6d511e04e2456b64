"""How a run that goes on is doing, from what its folder says so far."""

import json
import socket
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from harness.report.live.chart import chart_of
from harness.report.live.load import Load, Series
from harness.report.live.remaining import Remaining
from harness.report.live.tail import Tail
from harness.report.live.watch import LiveWindow, Past, Watch
from harness.scenario.file import load_scenario, scenario_yaml
from harness.scenario.plan import make_plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from tests.report.trend.test_trend import made

DRIVING = {"phase": "drive", "event": "started", "utc": "2026-01-01T00:00:00+00:00", "host": socket.gethostname()}


def add(path: Path, *entries: dict[str, Any]) -> None:
    """Write lines after those that a file has."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)


def sends(outcome: str, count: int) -> list[dict[str, Any]]:
    """Return the ends of so many sends."""
    return [{"index": number, "process": "p", "type": outcome, "kind": "send"} for number in range(count)]


def znode(path: str, data: object = "", type_: str = "set") -> dict[str, Any]:
    """Return a change of a znode."""
    return {"zxid": 1, "type": type_, "path": path, "data": json.dumps(data) if data else ""}


def step(number: int, what: str, *, at_s: float = 0.0) -> dict[str, Any]:
    """Return a line of the journal."""
    return {"time_ns": int(at_s * 1e9), "injection": number, "fault": "kill", "step": what, "targets": ["1"]}


@pytest.fixture
def driven(tmp_path: Path) -> RunFolder:
    """A run of `smoke` under load, of which nothing more is known."""
    folder = RunFolder(tmp_path)
    folder.plan.write_text(make_plan(load_scenario("smoke"), 7).to_json(), encoding="utf-8")
    add(folder.phases, DRIVING)
    return folder


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the time of looks."""
    return lambda now_s: monkeypatch.setattr(time, "monotonic", lambda: now_s)


def test_what_clients_get_done_is_counted_by_the_second_of_the_last_looks(
    driven: RunFolder, clock: Callable[[float], None]
) -> None:
    watch = Watch(driven)
    clock(100.0)
    add(driven.operations_of("producer-1"), *sends("ok", 50))
    assert "sends a second" not in dict(watch.look().rows), "one look has no rate"
    clock(102.0)
    add(driven.operations_of("producer-1"), *sends("ok", 30), *sends("info", 4))
    add(driven.operations_of("producer-2"), *sends("fail", 2), {"type": "ok", "kind": "poll"})
    assert dict(watch.look().rows)["sends a second"] == "15 acknowledged, 2 unknown, 1 failed"
    for second in range(103, 120):
        clock(float(second))
        quiet = watch.look()
    assert dict(quiet.rows)["sends a second"] == "0 acknowledged, 0 unknown, 0 failed"


@pytest.mark.parametrize(
    ("journal", "in_force"),
    [
        pytest.param([], "no fault", id="nothing yet"),
        pytest.param([step(0, "intended")], "kill 1", id="about to be injected"),
        pytest.param([step(0, "intended"), step(0, "confirmed")], "kill 1", id="confirmed"),
        pytest.param([step(0, "intended"), step(0, "inconclusive")], "kill 1", id="without effect, and not healed"),
        pytest.param([step(0, "intended"), step(0, "healed")], "no fault", id="healed"),
        pytest.param([step(0, "inconclusive")], "no fault", id="it could not be injected"),
        pytest.param([step(0, "failed")], "no fault", id="its own code failed before it was injected"),
        pytest.param([step(0, "postponed")], "no fault", id="postponed"),
        pytest.param([step(0, "postponed"), step(0, "intended")], "kill 1", id="postponed and then begun"),
        pytest.param([step(0, "postponed"), step(0, "inconclusive")], "no fault", id="postponed and then refused"),
    ],
)
def test_faults_in_force(driven: RunFolder, journal: list[dict[str, Any]], in_force: str) -> None:
    add(driven.journal, *journal)
    assert dict(Watch(driven).look().rows)["in force"] == in_force


def test_what_is_postponed_is_named_while_it_waits(driven: RunFolder) -> None:
    watch = Watch(driven)
    add(driven.journal, step(0, "postponed"))
    assert dict(watch.look().rows)["postponed"] == "kill 1"
    add(driven.journal, step(0, "intended"))
    assert "postponed" not in dict(watch.look().rows)


def test_a_spare_is_not_announced(driven: RunFolder) -> None:
    plan = make_plan(load_scenario("mix"), 7)
    driven.plan.write_text(plan.to_json(), encoding="utf-8")
    add(driven.journal, *(step(fault.injection, "healed") for fault in plan.faults if not fault.spare))
    assert "next" not in dict(Watch(driven).look().rows)


def test_the_next_fault_is_named_and_when_it_is_due_once_the_schedule_has_begun(
    driven: RunFolder, clock: Callable[[float], None]
) -> None:
    first, second = make_plan(load_scenario("smoke"), 7).faults[:2]
    watch = Watch(driven)
    assert dict(watch.look().rows)["next"] == f"{first.fault} {first.target}"
    add(driven.journal, step(0, "intended", at_s=500.0))
    clock(500.0 + second.at_s - first.at_s - 2.0)
    assert dict(watch.look().rows)["next"] == f"{second.fault} {second.target} in 2 s"


def test_brokers_leaders_and_isrs_are_those_of_zookeeper(driven: RunFolder) -> None:
    state = "/brokers/topics/orders/partitions/{}/state"
    watch = Watch(driven)
    add(
        driven.zookeeper,
        *(znode(f"/brokers/ids/{number}", {"port": 1}) for number in (0, 1, 2)),
        znode("/brokers/topics/orders", {"partitions": {"0": [0, 1, 2], "1": [1, 2, 0]}}),
        *(znode(state.format(number), {"leader": 1, "isr": [1, 2, 0]}) for number in (0, 1)),
    )
    whole = dict(watch.look().rows)
    assert whole["brokers"] == "3 of 3 registered: 0, 1, 2"
    assert whole["without leader"] == whole["ISR not full"] == "none of 2 partitions"
    add(
        driven.zookeeper,
        znode("/brokers/ids/1", type_="delete"),
        znode(state.format(0), {"leader": -1, "isr": [1]}),
        znode(state.format(1), {"leader": 2, "isr": [2, 0]}),
    )
    broken = dict(watch.look().rows)
    assert broken["brokers"] == "2 of 3 registered: 0, 2"
    assert broken["without leader"] == "1 of 2 partitions: orders-0"
    assert broken["ISR not full"] == "2 of 2 partitions: orders-0 (1), orders-1 (2,0)"


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({**DRIVING, "phase": "judge"}, id="it is judged"),
        pytest.param({**DRIVING, "event": "ended"}, id="the load has ended"),
    ],
)
def test_beside_the_load_there_is_nothing_to_say(driven: RunFolder, entry: dict[str, Any]) -> None:
    add(driven.phases, entry)
    assert Watch(driven).look().rows == []


def test_a_folder_that_is_gone_or_torn_is_looked_at_all_the_same(driven: RunFolder) -> None:
    watch = Watch(driven)
    odd = [znode("/brokers/topics/orders/partitions/0/state", content) for content in ({"leader": None}, [1], "text")]
    add(driven.zookeeper, *odd, znode("/brokers/topics/orders", {"partitions": None}))
    with driven.zookeeper.open("a") as history:
        history.write('{"path": "/brokers/ids/1", "type": "set"}\n[1]\nnot JSON\n{"path": "/brok')
    assert dict(watch.look().rows)["brokers"] == "1 of 1 registered: 1"
    driven.phases.unlink()
    driven.plan.unlink()
    driven.zookeeper.unlink()
    assert dict(watch.look().rows)["brokers"] == "1 of 1 registered: 1"
    add(driven.phases, DRIVING)
    assert "next" not in dict(Watch(driven).look().rows), "there is no plan"
    assert Watch(RunFolder(driven.root / "nothing")).look().phase == ""


def test_only_what_is_new_is_read_and_a_torn_line_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "file"
    tail = Tail(path)
    assert tail.lines() == b""
    path.write_bytes(b"one\ntw")
    assert tail.lines() == b"one\n"
    assert tail.lines() == b""
    with path.open("ab") as file:
        file.write(b"o\nthree\n")
    path.write_bytes(b"XXX" + path.read_bytes()[3:])
    assert tail.lines() == b"two\nthree\n", "what was read already is not looked at again"


def test_of_a_file_that_is_long_already_its_end_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456\n" * 1000)
    assert len(Tail(path, 80).lines()) == 80


def operation(type_: str, kind: str, at_s: float, **more: Any) -> dict[str, Any]:
    """Return a line of a client's file."""
    return {"type": type_, "kind": kind, "time_ns": int(at_s * 1e9), "topic": "orders", "partition": 0, **more}


def sent(index: int, at_s: float, took_s: float, type_: str = "ok") -> list[dict[str, Any]]:
    """Return both lines of a send; what is acknowledged has the offset of its index."""
    offset = index if type_ == "ok" else -1
    begin, end = operation("invoke", "send", at_s), operation(type_, "send", at_s + took_s, offset=offset)
    return [{**line, "index": index} for line in (begin, end)]


def read(at_s: float, offset: int, **more: Any) -> dict[str, Any]:
    """Return the end of a poll that delivered one record."""
    return operation("ok", "poll", at_s, records=[{"topic": "orders", "partition": 0, "offset": offset}], **more)


def test_the_load_is_a_series_of_seconds(tmp_path: Path) -> None:
    load = Load(tmp_path)
    add(tmp_path / "p.jsonl", *sent(0, 100.0, 0.1), *sent(1, 100.2, 0.2), *sent(2, 102.5, 0.1, "info"))
    add(tmp_path / "c.jsonl", read(100.5, 0), read(102.6, 1), read(102.7, 0, mode="reread"))
    add(tmp_path / "liveness.jsonl", read(100.5, 900))
    load.read()
    series = load.series(int(103.9e9))
    assert series is not None
    assert (series.begin_s, series.end_s, series.step_s) == (0.0, 3.0, 1), "a second that is not over is left out"
    assert series.acknowledged_per_s == [2.0, 0.0, 0.0]
    assert series.errors_per_s == [0.0, 0.0, 1.0]
    assert series.p99_ms[0] == pytest.approx(200, rel=0.1)
    assert series.p99_ms[1:] == [None, None]
    assert series.lag_records == [1.0, 1.0, 0.0]


def test_a_load_without_answers_goes_on_in_its_series_until_it_has_ended(tmp_path: Path) -> None:
    load = Load(tmp_path)
    add(tmp_path / "p.jsonl", *sent(0, 100.0, 0.1))
    load.read()
    stalled, ended = load.series(int(105e9)), load.series(None)
    assert stalled is not None
    assert ended is not None
    assert stalled.acknowledged_per_s == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert ended.acknowledged_per_s == [1.0]


def test_a_long_load_has_longer_steps_and_the_same_numbers(tmp_path: Path) -> None:
    load = Load(tmp_path)
    add(tmp_path / "p.jsonl", *(line for number in range(700) for line in sent(number, 100.0 + number, 0.1)))
    load.read()
    series = load.series(None)
    assert series is not None
    assert series.step_s == 2
    assert series.acknowledged_per_s == [1.0] * 350


def test_before_the_first_operation_there_is_no_series(tmp_path: Path) -> None:
    load = Load(tmp_path)
    (tmp_path / "p.jsonl").write_text('{"type": "inv', encoding="utf-8")
    load.read()
    assert load.series(int(1e9)) is None


def test_a_picture_has_the_fault_windows_and_gaps_where_nothing_is_known() -> None:
    series = Series(
        begin_s=0.0,
        step_s=1,
        acknowledged_per_s=[10.0, 0.0, 5.0, 10.0],
        errors_per_s=[0.0] * 4,
        p99_ms=[2.0, None, 4.0, 1.0],
        lag_records=[None] * 4,
    )
    windows = [
        LiveWindow(fault="kill 1", begin_s=1.0, end_s=2.0),
        LiveWindow(fault="pause 2", begin_s=3.0, end_s=None),
    ]
    chart = chart_of(Past(series=series, windows=windows))
    acknowledged, latency, _, lag = chart.panels
    assert (acknowledged.now, acknowledged.largest, len(acknowledged.lines)) == ("10", "10", 1)
    assert (latency.largest, len(latency.lines)) == ("4 ms", 2)
    assert (lag.now, lag.lines) == ("-", [])
    assert [(shade.fault, shade.left, shade.width) for shade in chart.shades] == [
        ("kill 1", 25.0, 25.0),
        ("pause 2", 75.0, 25.0),
    ]
    assert chart.shades[1].when == "3.0 s to now"
    assert [label for _, label in chart.ticks] == ["0 s", "1 s", "2 s", "3 s"]


def logged(began: datetime, *phases: tuple[str, float, float]) -> list[dict[str, Any]]:
    """Return a phase log: each phase with its begin and end in seconds."""
    return [
        {"phase": name, "event": event, "utc": (began + timedelta(seconds=at_s)).isoformat(), "error": ""}
        for name, begin_s, end_s in phases
        for event, at_s in (("started", begin_s), ("ended", end_s))
    ]


NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Noon:
    """A clock that stands."""

    @staticmethod
    def now(_zone: object) -> datetime:
        return NOON


NO_EARLIER = "at least 20 s of load, then collecting and judging"


@pytest.mark.parametrize(
    ("earlier", "since_s", "text"),
    [
        pytest.param({}, 5, "about 1 min 0 s, as smoke-20261119T020000-00000001 took", id="as the run before"),
        pytest.param({}, 95, "30 s longer so far than smoke-20261119T020000-00000001 took", id="longer than it"),
        pytest.param({"driver": "docker"}, 5, NO_EARLIER, id="a run with another driver says nothing"),
        pytest.param({"system": "kafka:3.9.1"}, 5, NO_EARLIER, id="nor does one of another system"),
    ],
)
def test_a_run_still_takes_as_long_as_the_last_one_that_is_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, earlier: dict[str, str], since_s: int, text: str
) -> None:
    monkeypatch.setattr("harness.report.live.remaining.datetime", Noon)
    before = made(tmp_path, "smoke-20261119T020000-00000001", **{"scenario": "smoke", "system": "python", **earlier})
    add(before.phases, *logged(datetime(2026, 11, 19, 2, tzinfo=UTC), ("drive", 0, 50), ("report", 60, 65)))
    run = RunFolder(tmp_path / "smoke-20261120T020000-00000007")
    run.root.mkdir()
    for folder in (before, run):
        folder.scenario.write_text(scenario_yaml(load_scenario("smoke")), encoding="utf-8")
    assert Remaining(run).text(Phase.DRIVE, NOON - timedelta(seconds=since_s), 20.0) == text
