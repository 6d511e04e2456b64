"""A cluster that hangs shows it: each door that is opened here keeps a broker from something that intact ones do."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.broker.coordinator.coordinator import GroupCoordinator
from harness.broker.replicas.isr import IsrKeeper
from harness.broker.zookeeper.registration import register_broker
from harness.contracts.checks import Settings
from harness.experiment.service_probe import PROCESS
from harness.simulation.run_folder import write_evidence
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.folder import RunFolder
from harness.store.history import OpKind, OpType, Sign
from harness.values import OFFSETS_TOPIC
from tests.simulation.scenarios import EXPIRE_CONTROLLER, KILL_LEADER, scenario
from tests.verdicts import FAIL, PASS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = Settings(acks=frozenset({-1}), min_insync_replicas=2, unclean_leader_election=False, idempotence=False)
HANG = {"duration_s": 6.0, "recovery_timeout_s": 5.0, "load": {"final_read_timeout_s": 2}}


def nobody_joins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IsrKeeper, "consider_joining", lambda *_: None)


def nobody_registers_twice(patch: pytest.MonkeyPatch) -> None:
    async def once(zk: Any, registration: Any, *, previous_session_id: int, **more: Any) -> int:
        if previous_session_id:
            await asyncio.Event().wait()
        return await register_broker(zk, registration, previous_session_id=previous_session_id, **more)

    patch.setattr("harness.broker.server.register_broker", once)


def offsets_load_for_ever(patch: pytest.MonkeyPatch) -> None:
    load = GroupCoordinator._load

    async def first(coordinator: GroupCoordinator, partition: int, leader_epoch: int) -> None:
        if leader_epoch:
            await asyncio.Event().wait()
        await load(coordinator, partition, leader_epoch)

    patch.setattr(GroupCoordinator, "_load", first)


LEADER_OF_OFFSETS = {**KILL_LEADER, "target": f"leader({OFFSETS_TOPIC},0)"}
HANGS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], dict[str, Any], Sign, str]] = {
    "a leader never takes a replica back": (nobody_joins, KILL_LEADER, Sign.IN_SYNC, "I31"),
    "a broker never registers again": (nobody_registers_twice, EXPIRE_CONTROLLER, Sign.REGISTERED, "I31"),
    "a coordinator never has its offsets": (offsets_load_for_ever, LEADER_OF_OFFSETS, Sign.COMMIT, "I32"),
}


def hanging(name: str) -> SimulatedHistory:
    door, fault, *_ = HANGS[name]
    with pytest.MonkeyPatch.context() as patch:
        door(patch)
        return simulate(scenario(fault, **HANG), 1)


def test_an_intact_cluster_shows_every_sign_and_what_was_asked_is_on_record() -> None:
    history = simulate(scenario(KILL_LEADER), 1)
    assert {line.sign for line in history.liveness} == {*Sign}
    assert [line for line in history.liveness if not line.shown] == []
    operations = history.operations[PROCESS]
    assert {(each.kind, each.type) for each in operations} == {
        (kind, type_) for kind in (OpKind.SEND, OpKind.COMMIT) for type_ in (OpType.INVOKE, OpType.OK)
    }
    value = next(each.value for each in operations if each.kind is OpKind.SEND)
    assert value in {record.value for each in history.operations["consumer-1"] for record in each.records}, (
        "readers come to it"
    )


@pytest.mark.parametrize("name", HANGS)
def test_a_cluster_that_hangs_lacks_a_sign(name: str) -> None:
    *_, sign, _ = HANGS[name]
    missing = [line for line in hanging(name).liveness if not line.shown]
    assert sign in {line.sign for line in missing}
    assert [line.hindrance for line in missing if line.hindrance] == []


@pytest.mark.spark
@pytest.mark.whole
def test_a_cluster_that_hangs_fails_and_an_intact_one_passes(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.judge import judge_runs

    histories = {name.replace(" ", "-"): hanging(name) for name in HANGS}
    histories["intact"] = simulate(scenario(KILL_LEADER), 1)
    folders = [RunFolder(tmp_path / name) for name in histories]
    for folder, history in zip(folders, histories.values(), strict=True):
        folder.root.mkdir()
        write_evidence(history, folder)
    judged = judge_runs(folders, SETTINGS, ["I31", "I32"], into=RunFolder(tmp_path))
    failed = {each.run_id: {check.check for check in each.checks if check.verdict is FAIL} for each in judged}
    assert all(check in failed[name.replace(" ", "-")] for name, (*_, check) in HANGS.items())
    assert [check.verdict for check in judged[-1].checks] == [PASS, PASS]
