import itertools
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient

from harness.errors import ClusterError
from harness.store.history import read_jsonl
from harness.system.waiting import until
from harness.zookeeper import observer
from harness.zookeeper.merged_history import merge_history
from harness.zookeeper.observer import ZookeeperObserver
from harness.zookeeper.sessions import expire, to_text

Line = tuple[str, str, str, int]


async def seen(path: Path, count: int, below: str) -> list[Line]:
    """The lines about znodes below a path, once there are as many as expected."""

    async def look() -> list[Line]:
        return [
            (line["type"], line["path"], line["data"], line["version"])
            for line in read_jsonl(path)
            if line["path"].startswith(below)
        ]

    return await until(look, lambda lines: len(lines) >= count, what=f"{count} lines", timeout_s=120, every_s=0.01)


@pytest.mark.cluster
async def test_changes_are_written_while_they_happen(client: KazooClient, server: Any, tmp_path: Path) -> None:
    history = tmp_path / "zookeeper.jsonl"
    client.create("/live/before", b"there", makepath=True)
    watching = ZookeeperObserver(server.hosts, history)
    await watching.start()
    await seen(history, 2, "/live")
    client.set("/live/before", b"changed")
    await seen(history, 3, "/live")
    client.create("/live/new/deep", b"d", makepath=True)
    await seen(history, 5, "/live")
    client.delete("/live/new", recursive=True)
    lines = await seen(history, 7, "/live")
    client.delete("/live", recursive=True)
    await watching.stop()
    assert lines == [
        ("create", "/live", "", 0),
        ("create", "/live/before", "there", 0),
        ("set", "/live/before", "changed", 1),
        ("create", "/live/new", "", 0),
        ("create", "/live/new/deep", "d", 0),
        ("delete", "/live/new/deep", "", -1),
        ("delete", "/live/new", "", -1),
    ]


@pytest.mark.cluster
async def test_a_znode_whose_data_is_null_has_none(client: KazooClient, server: Any, tmp_path: Path) -> None:
    client.create("/null", None)  # as Kafka 0.10 and 3.9 make some
    watching = ZookeeperObserver(server.hosts, tmp_path / "zookeeper.jsonl")
    await watching.start()
    lines = await seen(tmp_path / "zookeeper.jsonl", 1, "/null")
    client.delete("/null")
    await watching.stop()
    assert lines == [("create", "/null", "", 0)]


@pytest.mark.cluster
async def test_the_observer_goes_on_after_its_own_session_was_ended(
    client: KazooClient, server: Any, tmp_path: Path
) -> None:
    history = tmp_path / "zookeeper.jsonl"
    client.create("/resumed", b"1")
    watching = ZookeeperObserver(server.hosts, history)
    await watching.start()
    await expire(server.hosts, to_text(watching.session_id))
    client.set("/resumed", b"2")
    assert (await seen(history, 2, "/resumed"))[1:] == [("set", "/resumed", "2", 1)]
    client.set("/resumed", b"3")
    assert (await seen(history, 3, "/resumed"))[2:] == [("set", "/resumed", "3", 2)]
    await watching.stop()


@pytest.mark.cluster
async def test_the_merged_history_has_every_set_of_a_burst_with_its_session(
    client: KazooClient, server: Any, tmp_path: Path
) -> None:
    history = tmp_path / "zookeeper.jsonl"
    watching = ZookeeperObserver(server.hosts, history)
    await watching.start()
    client.create("/burst")
    pending = [client.set_async("/burst", str(number).encode()) for number in range(200)]
    assert [result.get(timeout=120).version for result in pending] == list(range(1, 201))
    await seen(history, 1, "/burst")
    await watching.stop()

    assert merge_history(history, server.data_dir) == []
    merged = history.read_bytes()
    assert merge_history(history, server.data_dir) == []
    assert history.read_bytes() == merged

    lines = list(read_jsonl(history))
    burst = [line for line in lines if line["path"] == "/burst"]
    assert [line["version"] for line in burst] == list(range(201))
    assert {line["session"] for line in burst} == {to_text(client.client_id[0])}
    assert "observer" in {line["source"] for line in burst}
    assert all(one["zxid"] <= other["zxid"] for one, other in itertools.pairwise(lines))


async def test_no_server_is_a_cluster_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(observer, "CONNECT_TIMEOUT_S", 0.1)
    with pytest.raises(ClusterError, match=r"does not answer: .*; it was asked without TLS"):
        await ZookeeperObserver("127.0.0.1:1", tmp_path / "zookeeper.jsonl").start()
