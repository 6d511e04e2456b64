"""Compacted topics under faults: no intact cluster is accused, and a cleaner that takes too much is found."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.broker.cleaner.offset_map import OffsetMap
from harness.cluster.broker_properties import effective
from harness.cluster.inherited_properties import stated_defaults
from harness.contracts.checks import Settings
from harness.simulation.run_folder import write_evidence
from harness.simulation.schedule import SimulatedHistory, simulate
from harness.store.folder import RunFolder
from tests.simulation.scenarios import KILL_LEADER, scenario
from tests.verdicts import FAIL, PASS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLEANERS = {"log.cleaner.backoff.ms": 300, "offsets.topic.segment.bytes": 2000, "offsets.topic.num.partitions": 1}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.insync.replicas": 2,
    "min.cleanable.dirty.ratio": 0.1,
    "segment.bytes": 1500,
}
SETTINGS = Settings(
    acks=frozenset({-1}),
    min_insync_replicas=2,
    unclean_leader_election=False,
    idempotence=True,
    inherited_by_topics=stated_defaults(effective(3, {name: str(value) for name, value in CLEANERS.items()})),
)
FEW_KEYS = {"rate_per_s": 30, "keys": 4, "idempotence": True, "committers": 1, "reread": True}
SEEDS = (1, 2, 3)


def compacted(seed: int) -> SimulatedHistory:
    return simulate(
        scenario(
            KILL_LEADER,
            cluster={"properties": CLEANERS},
            topics=[{"name": "orders", "partitions": 1, "config": COMPACTED}],
            load=FEW_KEYS,
        ),
        seed,
    )


def greedy(seed: int) -> SimulatedHistory:
    """A cleaner that takes a key's last record for one that a later one replaces."""
    with pytest.MonkeyPatch.context() as patch:
        get = OffsetMap.get
        patch.setattr(OffsetMap, "get", lambda offsets, key: get(offsets, key) + 1)
        return compacted(seed)


@pytest.mark.spark
@pytest.mark.whole
def test_what_cleaners_took_is_missed_by_nobody_unless_it_was_a_last_one(spark: "SparkSession", tmp_path: Path) -> None:
    from harness.analysis.judge import judge_runs

    histories = {f"intact-{seed}": compacted(seed) for seed in SEEDS} | {"greedy": greedy(10)}
    folders = [RunFolder(tmp_path / name) for name in histories]
    for folder, history in zip(folders, histories.values(), strict=True):
        folder.root.mkdir()
        write_evidence(history, folder)
    *intact, broken = judge_runs(folders, SETTINGS, into=RunFolder(tmp_path))
    for judgement in intact:
        assert judgement.counts["compactions"] > 20
        assert judgement.counts["superseded"] > 100
        assert {each.check: each.reason for each in judgement.checks if each.verdict is not PASS} == {}
    assert {"I10", "I16"} <= {each.check for each in broken.checks if each.verdict is FAIL}
