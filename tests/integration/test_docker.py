"""The phases up to the judgement on a cluster of containers: whole evidence, and an honest end when the engine goes."""

import os
import threading
import time
from pathlib import Path

import pytest

from harness import phases
from harness.cluster.containers.engine import Engine
from harness.errors import EvidenceError
from harness.judging.assessment import assemble
from harness.run.journal import fault_results, read_journal
from harness.run.run import Run
from harness.scenario.file import read_scenario
from harness.scenario.plan import load_plan
from harness.store.folder import RunFolder
from harness.store.history import read_jsonl
from harness.store.phase_log import ends
from harness.verdict import EnvironmentVerdict, FaultVerdict, SystemVerdict
from tests.cluster.containers.engine_proxy import EngineProxy

pytestmark = [pytest.mark.docker, pytest.mark.rotating(1)]

SCENARIO = """\
name: brief
description: Three faults on an ensemble
driver: docker
cluster: {zookeeper_servers: 3}
topics: [{name: orders, partitions: 2, config: {min.insync.replicas: 2}}]
workloads: [{kind: produce-consume, parameters: {producers: 1, consumers: 1, acks: all, rate_per_s: 50}}]
faults:
  - {kind: pause, at_s: 0.2, duration_s: 4, target: "followers(orders,0)"}
  - {kind: kill, at_s: 5, duration_s: 1, target: "leader(orders,0)"}
  - {kind: expire-session, at_s: 12, target: controller}
duration_s: 13
"""


def new_run(runs: Path) -> RunFolder:
    return phases.create_from(read_scenario(SCENARIO, "brief.yaml"), 1, runs)


def test_faults_on_containers_are_confirmed_and_leave_whole_evidence_and_nothing_else(
    docker_images: Engine, tmp_path: Path
) -> None:
    folder = new_run(tmp_path)
    try:
        phases.start(folder, owner_pid=os.getpid())
        phases.drive(folder)
        phases.collect(folder)
    finally:
        phases.stop(folder)
    assert [end.error for end in ends(folder).values()] == [""] * 4
    assert [remark for end in ends(folder).values() for remark in (*end.remarks, *end.residue)] == []
    results = fault_results(load_plan(folder.plan), read_journal(folder.journal))
    assert [(result.fault, result.verdict) for result in results] == [
        ("pause", FaultVerdict.CONFIRMED),
        ("kill", FaultVerdict.CONFIRMED),
        ("expire-session", FaultVerdict.CONFIRMED),
    ]
    dumps = [folder.replica_dump(broker, "orders", 0) for broker in range(3)]
    lengths = {len(list(read_jsonl(dump))) for dump in dumps}
    assert len(lengths) == 1, "after the steady state all replicas are alike"
    assert lengths.pop() > 100
    assert {line["source"] for line in read_jsonl(folder.zookeeper)} == {"observer", "transaction_log"}
    assert docker_images.resources(folder.root) == []


def test_an_engine_that_goes_away_in_mid_run_ends_inconclusive_and_with_residue(
    docker_images: Engine, engine_proxy: EngineProxy, tmp_path: Path
) -> None:
    folder = new_run(tmp_path)

    def close_at_the_first_fault() -> None:
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and not (folder.journal.exists() and folder.journal.stat().st_size):
            time.sleep(0.02)
        engine_proxy.close()

    closing = threading.Thread(target=close_at_the_first_fault)
    try:
        phases.start(folder, owner_pid=os.getpid())
        closing.start()
        phases.drive(folder)
        with pytest.raises(EvidenceError, match="there is no cluster to collect evidence from"):
            phases.collect(folder)
    finally:
        phases.stop(folder)
        closing.join()
        left = docker_images.resources(folder.root)
        docker_images.remove_run(folder.root)
    result = assemble(Run.load(folder))
    assert result.verdicts.system is SystemVerdict.UNKNOWN
    assert result.verdicts.fault is not FaultVerdict.CONFIRMED
    assert result.verdicts.environment is EnvironmentVerdict.RESIDUE
    assert "no Docker engine answers" in " ".join(result.residue)
    assert len(left) == 6 + 1 + 6, "they could not be removed"
    assert read_jsonl(folder.state_change_log(0)), "what brokers said they did is on this side"
