"""Which systems there are, what they refuse, and what they make of what their brokers told."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.analysis.sources.lineage import LINEAGE, missing_events
from harness.cluster.driver import BrokerStatus
from harness.cluster.systems.system import system_named
from harness.errors import ScenarioError
from harness.store.history import read_jsonl
from harness.system.chain import read_chain
from harness.system.process_state import ProcessState
from tests.cluster.systems.test_log_reader import APPENDED, CONNECTED, FOLLOWER, LEADER, REGISTERED, START


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("kafak:3.9.1", "unknown system 'kafak:3.9.1'; known: python, kafka", id="no such family"),
        pytest.param("kafka:9.9", "no Apache Kafka '9.9'; known releases: 0.10.2.2,", id="no such release"),
        pytest.param(
            "kafka", "which release of Apache Kafka? As in kafka:4.4.0; known: 0.10.2.2,", id="a release is missing"
        ),
        pytest.param("python:3", "the system python has no releases", id="a release of what has none"),
    ],
)
def test_what_is_no_system_is_refused(name: str, text: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        system_named(name)
    assert text in str(refused.value)


def broker(folder: Path, *lines: str) -> BrokerStatus:
    log = folder / "broker.log"
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return BrokerStatus(
        broker_id=0,
        state=ProcessState.STOPPED,
        pid=None,
        client_address="",
        peer_address="",
        log_dir=folder,
        state_change_log=folder / "logs" / "state-change.jsonl",
        human_log=log,
        starts=1,
    )


def test_a_state_change_log_is_made_of_what_kafka_told(tmp_path: Path) -> None:
    one = broker(tmp_path, START, CONNECTED, REGISTERED, LEADER, START, FOLLOWER.format(2))
    assert system_named("kafka:3.9.1").gather(one) == []
    lines = list(read_jsonl(one.state_change_log))
    assert [line["ev"] for line in lines] == [
        "broker_start", "zk_session", "broker_registered", "become_leader", "broker_start", "become_follower",
    ]  # fmt: skip
    assert [line["seq"] for line in lines] == [0, 1, 2, 3, 0, 1]
    assert len({line["inc"] for line in lines}) == 2
    assert [(line["session"], line["broker_epoch"]) for line in lines[3:5]] == [("0x10003015c690002", 58), ("", -1)]
    with one.state_change_log.open("rb") as chain:
        assert read_chain(chain).breaks == 0


def test_instants_are_on_the_clock_that_the_harness_uses(tmp_path: Path) -> None:
    now_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
    instant = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S,000")
    one = broker(tmp_path, START.replace("2026-11-22 21:59:23,694", instant))
    system_named("kafka:3.9.1").gather(one)
    (line,) = read_jsonl(one.state_change_log)
    assert line["ts"] == now_ns // 1_000_000_000 * 1_000_000_000
    assert abs(line["mono"] - monotonic_ns) < 60_000_000_000


def test_instants_are_there_whatever_was_done_to_the_brokers_clock(tmp_path: Path) -> None:
    wall_ns, now_ns = time.time_ns() // 1_000_000 * 1_000_000, time.monotonic_ns()
    shown = [wall_ns - 60 * 10**9, wall_ns + (3600 - 30) * 10**9]
    lines = [
        START.replace("2026-11-22 21:59:23,694", datetime.fromtimestamp(at // 1_000_000 / 1000, UTC).isoformat(
            " ", "milliseconds").partition("+")[0].replace(".", ","))
        for at in shown
    ]  # fmt: skip
    log = tmp_path / "supervisor.jsonl"
    clock = {"event": "clock_set", "name": "broker-0", "since_ns": now_ns - 40 * 10**9, "step_s": 3600, "rate": 1.0}
    log.write_text(json.dumps(clock))
    one = replace(broker(tmp_path, *lines), clock_log=log)
    system_named("kafka:3.9.1").gather(one)
    state_changes = list(read_jsonl(one.state_change_log))
    assert [line["ts"] for line in state_changes] == pytest.approx(shown, abs=2_000_000)
    assert [line["mono"] for line in state_changes] == pytest.approx(
        [now_ns - 60 * 10**9, now_ns - 30 * 10**9], abs=5 * 10**9
    )


@pytest.mark.parametrize(
    ("system", "lines", "shown_ns"),
    [
        pytest.param("python", b'{"ts": 5, "ev": "x"}\n{"ts": 7, "ev": "y"}\n', 7, id="our broker's last line"),
        pytest.param("python", b'{"ts": 5, "ev": "x"}\n{"ts": 7, "e\n', 5, id="a torn line has no time"),
        pytest.param("python", b"", None, id="no line of ours"),
        pytest.param(
            "kafka:3.9.1",
            f"{START}\njava.lang.Exception\n  at somewhere\n".encode(),
            1_795_384_763_694_000_000,
            id="Kafka's last line that has a time",
        ),
        pytest.param("kafka:3.9.1", b"  at somewhere\n", None, id="no such line of Kafka's"),
    ],
)
def test_lines_say_what_the_brokers_clock_showed(system: str, lines: bytes, shown_ns: int | None) -> None:
    assert system_named(system).dated(lines) == shown_ns


@pytest.mark.parametrize(
    ("lines", "roles"),
    [
        pytest.param([APPENDED], [""], id="in the midst of a log, when its role was told before"),
        pytest.param([LEADER, APPENDED], ["leader"], id="after it was told"),
        pytest.param([START, APPENDED], [], id="a new process has none yet"),
    ],
)
def test_what_is_appended_is_told_with_its_role(lines: list[str], roles: list[str]) -> None:
    events = system_named("kafka:3.9.1").state_changes("".join(f"{line}\n" for line in lines).encode(), ["append"])
    assert [event["role"] for event in events] == roles


def test_words_that_are_new_are_a_remark(tmp_path: Path) -> None:
    one = broker(tmp_path, START, LEADER.replace("ISR [", "in sync ["))
    assert system_named("kafka:3.9.1").gather(one) == ["1 lines of state.change.logger could not be understood"]


@pytest.mark.parametrize(
    ("fact", "emits", "lacking"),
    [
        pytest.param("appends", {"append"}, [], id="all of its lines"),
        pytest.param("high_watermarks", {"append"}, ["hw"], id="none of its lines"),
        pytest.param("refused_retries", {"append"}, ["batch_refused", "become_leader"], id="some of its lines"),
        pytest.param("sends", set(), [], id="a fact that brokers have no part in"),
        pytest.param("leader_epochs", set(), [], id="a fact that says enough without"),
    ],
)
def test_which_lines_a_fact_lacks(fact: str, emits: set[str], lacking: list[str]) -> None:
    assert missing_events([fact], emits).get(fact, []) == lacking


def test_of_our_broker_no_fact_lacks_a_line() -> None:
    assert missing_events(LINEAGE, system_named("python").emits) == {}
