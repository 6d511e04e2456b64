"""What the interceptors for Java write of clients of Kafka's own library, and how it is judged."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cluster.systems.kafka import jars
from harness.cluster.systems.kafka.releases import release_of
from harness.cluster.systems.system import system_named
from tests.integration.test_existing_clusters import SCRIPT, TIMEOUT_S, base_port

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(2)]

RELEASE = "4.4.0"
INTERCEPTORS = Path(__file__).parents[2] / "recorders/java/src/main/java/org/kafkachaos/recorder"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """A broker, and the program of recorded clients."""

    servers: str
    classpath: str

    def recorded(self, folder: Path, topic: str, offsets: str, commits: str) -> list[dict[str, Any]]:
        """Have the program record a history, after which the group's offsets are changed; return its lines."""
        argv = ["java", "-cp", self.classpath, "Recorded", self.servers, str(folder), topic, offsets, commits]
        subprocess.run(argv, timeout=TIMEOUT_S, check=True)
        texts = [text for file in sorted(folder.iterdir()) for text in file.read_text(encoding="utf-8").splitlines()]
        return [line for text in texts if "kind" in (line := json.loads(text))]


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    """Start one broker and compile the program."""
    if lacking := system_named(f"kafka:{RELEASE}").lacks():
        pytest.skip(lacking)
    if shutil.which("javac") is None:
        pytest.skip("no javac here")
    library, folder = jars.folder_of(release_of(RELEASE)), tmp_path_factory.mktemp("java")
    sources = [*map(str, sorted(INTERCEPTORS.glob("*.java"))), str(Path(__file__).with_name("Recorded.java"))]
    compiling = ["javac", "-Werror", "-cp", f"{library}/*", "-d", str(folder / "classes"), *sources]
    subprocess.run(compiling, timeout=TIMEOUT_S, check=True)
    environment = os.environ | {"BASE_PORT": str(base_port())}
    argv = [str(SCRIPT), "up", str(folder / "broker"), str(library), "1"]
    try:
        told = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        servers = next(line for line in told.stdout.splitlines() if line.startswith("bootstrap_servers="))
        yield Clients(servers=servers.partition("=")[2], classpath=f"{folder / 'classes'}:{library}/*")
    finally:
        subprocess.run([str(SCRIPT), "down", str(folder / "broker")], check=True, timeout=TIMEOUT_S)


def judged(folder: Path) -> dict[str, str]:
    """Return the answers of two checks to a history."""
    argv = [sys.executable, "-m", "harness", "judge", "--operations", str(folder), "--into", str(folder.parent / "j")]
    argv += ["--set", "power_loss=false", "--check", "offset-regression", "--check", "lost-write"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    answers = list((folder.parent / "j").rglob("verdict.json"))
    assert answers, done.stdout + done.stderr
    checks = json.loads(answers[0].read_text(encoding="utf-8"))["checks"]
    return {each["check"]: each["verdict"] for each in checks}


@pytest.mark.parametrize(
    ("offsets", "verdict", "read_back"),
    [
        pytest.param("kept", "PASS", [60], id="offsets that are kept"),
        pytest.param("back", "UNKNOWN", [], id="an earlier offset, as a commit that failed may have written"),
        pytest.param("gone", "FAIL", [-1], id="an offset that no commit explains"),
    ],
)
def test_commits_are_recorded_and_read_back(
    clients: Clients, tmp_path: Path, offsets: str, verdict: str, read_back: list[int]
) -> None:
    lines = clients.recorded(tmp_path / "history", f"orders-{offsets}", offsets, "manual")
    ended = [line for line in lines if line["type"] == "ok"]
    assert [line["offset"] for line in ended if line["kind"] == "fetch_committed"] == read_back
    commits = [line for line in ended if line["kind"] == "commit"]
    assert {(line["group"], line["mode"]) for line in commits} == {(f"orders-{offsets}", "manual")}
    assert [line["offset"] for line in commits] == sorted(line["offset"] for line in commits)
    assert commits[-1]["offset"] == 60
    assert judged(tmp_path / "history") == {"offset-regression": verdict, "lost-write": "PASS"}


def test_a_commit_began_when_its_records_had_been_read(clients: Clients, tmp_path: Path) -> None:
    lines = clients.recorded(tmp_path / "history", "orders-automatic", "kept", "automatic")
    polls = [line for line in lines if line["kind"] == "poll" and line["type"] == "ok"]
    begun, ended = (
        [line for line in lines if line["kind"] == "commit" and line["type"] == it] for it in ("invoke", "ok")
    )
    assert [line["mode"] for line in ended] == ["automatic"] * len(ended)
    assert ended[-1]["offset"] == 60
    for begin, end in zip(begun, ended, strict=True):
        held = [poll for poll in polls if poll["records"][0]["offset"] < end["offset"]]
        assert held[-1]["time_ns"] <= begin["time_ns"] <= end["time_ns"]
