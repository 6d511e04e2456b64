import json
from contextlib import AbstractContextManager
from contextlib import nullcontext as does_not_raise
from pathlib import Path
from typing import Any

import pytest

from harness.errors import DeadlineError
from harness.experiment.probes import FileProgress, not_moving, not_whole, steady_state
from harness.zookeeper.view import PartitionView
from tests.fake_cluster import FakeCluster

TOPICS = {"orders": 1}


def partition(
    number: int = 0, *, leader: int = 0, isr: tuple[int, ...] = (0, 1), topic: str = "orders"
) -> PartitionView:
    return PartitionView(
        topic=topic,
        partition=number,
        assignment=(0, 1),
        leader=leader,
        leader_epoch=0,
        isr=isr,
        controller_epoch=1,
        zk_version=0,
    )


@pytest.mark.parametrize(
    ("partitions", "problems"),
    [
        pytest.param([partition()], [], id="whole"),
        pytest.param([partition(isr=(1, 0))], [], id="whole, whatever the order of the ISR"),
        pytest.param([], ["orders-0 has no state"], id="not there yet"),
        pytest.param([partition(leader=-1)], ["orders-0 has no leader"], id="no leader"),
        pytest.param([partition(isr=(0,))], ["orders-0 has the ISR [0] of [0, 1]"], id="a replica is missing"),
        pytest.param(
            [partition(), partition(topic="__consumer_offsets", isr=(1,))],
            ["__consumer_offsets-0 has the ISR [1] of [0, 1]"],
            id="a topic of the brokers' own is short of a replica",
        ),
    ],
)
def test_a_cluster_is_whole_with_leaders_and_full_isrs(partitions: list[PartitionView], problems: list[str]) -> None:
    assert not_whole(partitions, TOPICS) == problems


def line(kind: str, type_: str, index: int = 0, place: int = 0) -> str:
    return json.dumps({"index": index, "kind": kind, "type": type_, "topic": "orders", "partition": place}) + "\n"


@pytest.mark.parametrize(
    ("before", "after", "problems"),
    [
        pytest.param("", line("send", "invoke") + line("send", "ok"), [], id="an acknowledged send"),
        pytest.param(
            line("send", "invoke"),
            line("send", "ok") + line("send", "invoke", 1),
            ["orders-0 has acknowledged nothing new"],
            id="an acknowledgement of what was sent before proves nothing",
        ),
        pytest.param(
            line("send", "invoke") + line("send", "ok"),
            "",
            ["client producer-1 has completed nothing"],
            id="what was before does not count",
        ),
        pytest.param(
            "",
            line("send", "invoke") + line("send", "info"),
            ["client producer-1 has completed nothing", "orders-0 has acknowledged nothing new"],
            id="an open end is no progress",
        ),
        pytest.param(
            "",
            line("send", "invoke", 0, 7) + line("send", "ok", 0, 7),
            ["orders-0 has acknowledged nothing new"],
            id="another partition's progress is not this one's",
        ),
        pytest.param("", line("poll", "invoke") + line("poll", "ok"), [], id="a load that only reads"),
        pytest.param(
            "", line("poll", "invoke") + line("poll", "ok")[:20], ["client producer-1 has completed nothing"], id="torn"
        ),
    ],
)
def test_clients_move_on_when_something_ends_well(tmp_path: Path, before: str, after: str, problems: list[str]) -> None:
    path = tmp_path / "producer-1.jsonl"
    path.write_text(before)
    progress = FileProgress(folder=tmp_path)
    with path.open("a") as file:
        file.write(after)
    progress.look()
    assert not_moving(progress, TOPICS, ["producer-1"]) == problems


def test_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "producer-1.jsonl"
    progress = FileProgress(folder=tmp_path)
    text = line("send", "invoke") + line("send", "ok")
    for part in (text[:30], text[30:80], text[80:]):
        with path.open("a") as file:
            file.write(part)
        progress.look()
    assert not_moving(progress, TOPICS, ["producer-1"]) == []


def test_a_look_that_begins_amid_a_line_takes_it_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "producer-1.jsonl"
    text = line("send", "invoke") + line("send", "ok")
    path.write_text(text[:30])
    progress = FileProgress(folder=tmp_path)
    with path.open("a") as file:
        file.write(text[30:])
    progress.look()
    assert not_moving(progress, TOPICS, ["producer-1"]) == []


async def test_the_deadline_says_what_is_missing(tmp_path: Path) -> None:
    cluster: Any = FakeCluster(root=tmp_path, isr=[1])
    with pytest.raises(DeadlineError, match=r"steady state: not within 0 s; last saw \['orders-0 has the ISR \[1\]"):
        await steady_state(cluster, TOPICS, [], FileProgress(folder=tmp_path), timeout_s=0)


@pytest.mark.parametrize(
    ("deleting", "expected"),
    [
        pytest.param({"/admin/delete_topics/short-lived"}, does_not_raise(), id="a topic that waits for its deletion"),
        pytest.param(
            set(), pytest.raises(DeadlineError, match=r"short-lived-0 has the ISR \[1\]"), id="a topic that stays"
        ),
        pytest.param(
            {"/admin/delete_topics/orders", "/admin/delete_topics/short-lived"},
            pytest.raises(DeadlineError, match="orders-0 has no state"),
            id="a topic of the run that waits for its deletion",
        ),
    ],
)
async def test_what_is_about_to_be_deleted_need_not_be_whole(
    tmp_path: Path, deleting: set[str], expected: AbstractContextManager[object]
) -> None:
    whole = {("orders", 0): (1,), ("short-lived", 0): (0, 1)}
    if "/admin/delete_topics/orders" in deleting:
        whole[("orders", 0)] = (0, 1)
    cluster: Any = FakeCluster(root=tmp_path, isr=[1], assignments=whole, znodes=deleting)
    with expected:
        await steady_state(cluster, TOPICS, [], FileProgress(folder=tmp_path), timeout_s=0)


async def test_a_whole_cluster_under_moving_clients_is_steady(tmp_path: Path) -> None:
    await steady_state(FakeCluster(root=tmp_path), TOPICS, [], FileProgress(folder=tmp_path), timeout_s=0)
