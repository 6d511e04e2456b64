"""Changes of an existing cluster are undone, whatever goes wrong on the way."""

import contextlib
import json
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.cluster.external import restoring
from harness.cluster.external.driver import ExternalDriver
from harness.cluster.external.place import ExternalCluster, Host, Notes, of_other_runs, taken_by_runs
from harness.cluster.external.restoring import grace_s, paused
from harness.store.folder import RunFolder

OWN = "chaos-0123456789-"


def noting(root: Path, word: str, *statements: str) -> str:
    """Return a command that notes a word, and does something else before."""
    program = "; ".join((*statements, f"open({str(root / 'done')!r}, 'a').write({word!r})"))
    return f'{sys.executable} -c "{program}"'.replace("{", "{{").replace("}", "}}")


@pytest.fixture
def cluster(tmp_path: Path) -> ExternalCluster:
    RunFolder(tmp_path).cluster.mkdir()
    return ExternalCluster(
        cluster_id="its-id",
        bootstrap_servers="one:9092",
        zookeeper_connect="keeper:2181",
        hosts={number: Host(host="one", name="one") for number in range(3)},
        commands={"pause": noting(tmp_path, "paused "), "resume": noting(tmp_path, "resumed ")},
        timeout_s=60,
        prefix=OWN,
    )


def test_a_pause_is_noted_and_lasts(cluster: ExternalCluster, tmp_path: Path) -> None:
    notes = Notes(tmp_path)
    notes.add("paused", 1)
    paused(cluster, notes, 1)
    assert (tmp_path / "done").read_text(encoding="utf-8") == "paused "
    assert notes.of("paused") == [1]


def test_a_pause_that_lands_after_its_end_ends_at_once(cluster: ExternalCluster, tmp_path: Path) -> None:
    notes, path = Notes(tmp_path), RunFolder(tmp_path).cluster / "disturbed.json"
    notes.add("paused", 1)
    late = noting(tmp_path, "paused ", f"open({str(path)!r}, 'w').write('{json.dumps({})}')")
    paused(replace(cluster, commands=cluster.commands | {"pause": late}), notes, 1)
    assert (tmp_path / "done").read_text(encoding="utf-8") == "paused resumed "
    assert notes.of("paused") == []


@pytest.mark.parametrize(
    ("topics", "problem"),
    [
        pytest.param([], "", id="no topics"),
        pytest.param(["orders", "chaos-orders", "chaos-012345678-x"], "", id="topics of others"),
        pytest.param(["orders", f"{OWN}orders"], f"topics with the run's prefix exist already: {OWN}orders",
                     id="topics with the run's prefix"),
        pytest.param(["orders", "chaos-abcdef0123-orders"], "another run uses this cluster, or left topics that must"
                     " be deleted first: chaos-abcdef0123-orders", id="topics of another run"),
    ],
)  # fmt: skip
def test_no_run_begins_beside_another_one(topics: list[str], problem: str) -> None:
    assert problem in taken_by_runs(topics, OWN)
    assert bool(taken_by_runs(topics, OWN)) == bool(problem)


@pytest.mark.parametrize(
    ("topics", "ends"),
    [
        pytest.param([f"{OWN}orders", "orders"], False, id="its own and others"),
        pytest.param([f"{OWN}orders", "chaos-abcdef0123-orders"], True, id="those of a run that began meanwhile"),
    ],
)
def test_of_two_runs_that_began_at_once_none_goes_on_unseen(topics: list[str], ends: bool) -> None:
    assert bool(of_other_runs(topics, OWN)) is ends


@pytest.mark.parametrize("timeout_s", [1.0, 600.0])
def test_undoing_has_the_time_that_all_its_steps_may_take(cluster: ExternalCluster, timeout_s: float) -> None:
    waits_s = restoring.SESSION_TIMEOUT_S + restoring.START_TIMEOUT_S
    min_hold_s = len(cluster.hosts) * (2 * timeout_s + waits_s) + restoring.TOPICS_TIMEOUT_S
    assert grace_s(replace(cluster, timeout_s=timeout_s)) > min_hold_s


@pytest.mark.parametrize(
    ("listening", "noted", "state"),
    [
        pytest.param(True, ["paused"], "paused", id="a paused one for which too many wait"),
        pytest.param(False, ["paused"], "stopped", id="one that ended while it was paused"),
        pytest.param(False, [], "stopped", id="one that was not paused"),
    ],
)
async def test_a_broker_that_says_nothing_is_paused_if_it_is_there(
    cluster: ExternalCluster, tmp_path: Path, listening: bool, noted: list[str], state: str
) -> None:
    with socket.socket() as broker, contextlib.ExitStack() as stack:
        broker.bind(("127.0.0.1", 0))
        if listening:
            broker.listen(0)
            for _ in range(4):  # so many that the kernel takes no more
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(broker.getsockname())
        address = f"127.0.0.1:{broker.getsockname()[1]}"
        replace(cluster, hosts={1: cluster.hosts[1]}, addresses={1: address}).save(tmp_path)
        for each in noted:
            Notes(tmp_path).add(each, 1)
        (seen,) = (await ExternalDriver(tmp_path, "run").status()).brokers
    assert seen.state == state
