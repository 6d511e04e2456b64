"""Whatever happens between three brokers: what was committed stays, and equal epochs mean equal records."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.broker.replicas.partition import Partition
from harness.broker.wire.error_codes import ErrorCode
from harness.events import HighWatermark, Truncate
from harness.simulation.loop import run
from tests.broker.replica_cluster import ReplicaCluster

BROKERS = (1, 2, 3)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.sampled_from(BROKERS), st.integers(1, 3)),
        st.tuples(st.just("produce all"), st.sampled_from(BROKERS), st.integers(1, 3)),
        st.tuples(st.just("elect"), st.sampled_from(BROKERS), st.sets(st.sampled_from(BROKERS))),
        st.tuples(st.just("isolate"), st.sampled_from(BROKERS), st.just(0)),
        st.tuples(st.just("heal"), st.just(0), st.just(0)),
        st.tuples(st.just("restart"), st.sampled_from(BROKERS), st.just(0)),
        st.tuples(st.just("wait"), st.just(0), st.sampled_from([0.001, 0.01, 0.3, 3.0])),
    ),
    max_size=25,
)


@dataclass
class Story:
    """Plays steps; a leader is only ever elected from the ISR, so nothing acknowledged may be lost."""

    cluster: ReplicaCluster
    produced: int = 0
    pending: list[asyncio.Task[None]] = field(default_factory=list)
    acknowledged: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Leader epoch and CRC by base offset."""

    async def play(self, kind: str, target: int, value: Any) -> None:
        cluster = self.cluster
        if kind in ("produce", "produce all"):
            acks = 1 if kind == "produce" else -1
            self.pending.append(asyncio.create_task(self._produce(target, acks, value)))
            await asyncio.sleep(0)
        elif kind == "elect" and target in cluster.state()[0].isr:
            await cluster.elect(target, tell=sorted(value) or None)
        elif kind == "isolate":
            cluster.network.isolate(target)
        elif kind == "heal":
            cluster.network.heal()
        elif kind == "restart":
            await cluster.kill(target)
            await cluster.start(target)
            await cluster.tell(target)
        elif kind == "wait":
            await asyncio.sleep(value)

    async def _produce(self, target: int, acks: int, count: int) -> None:
        self.produced += 1
        values = [f"{self.produced}.{i}" for i in range(count)]
        replica = self.cluster[target].manager.replicas.get("t", 0)
        result = await self.cluster.produce(target, *values, acks=acks, timeout_s=1.0)
        if acks == -1 and result.error is ErrorCode.NONE:
            [stored] = [p for p in self._prints(replica) if p[0] == result.base_offset]
            self.acknowledged[stored[0]] = stored[1:]

    def _prints(self, replica: Partition | None) -> list[tuple[int, int, int]]:
        broker = next(b for b in self.cluster.brokers.values() if b.manager.replicas.get("t", 0) is replica)
        return broker.prints()


def _check_epochs_rise_with_offsets(cluster: ReplicaCluster) -> None:
    for broker in cluster.brokers.values():
        entries = broker.replica().log.epochs.entries
        assert list(entries) == sorted(entries)
        for base, epoch, _ in broker.prints():
            assert broker.replica().log.epochs.epoch_at(base) == epoch


def _check_log_matching(cluster: ReplicaCluster) -> None:
    """Two logs that agree on a batch's offset and epoch agree on everything before it."""
    logs = [broker.prints() for broker in cluster.brokers.values()]
    for ours in logs:
        for theirs in logs:
            common = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a[:2] == b[:2]]
            if common:
                assert ours[: common[-1] + 1] == theirs[: common[-1] + 1]


@settings(max_examples=150)
@given(steps=steps)
def test_acknowledged_records_survive_and_logs_match(steps: list[tuple[str, Any, Any]]) -> None:
    async def play() -> None:
        async with ReplicaCluster() as cluster:
            await cluster.elect(1)
            story = Story(cluster)
            for kind, target, value in steps:
                await story.play(kind, target, value)
                _check_epochs_rise_with_offsets(cluster)
                _check_log_matching(cluster)
            cluster.network.heal()
            await asyncio.gather(*story.pending)
            await cluster.elect(cluster.state()[0].isr[0])
            await cluster.settled()
            await cluster.until(lambda: set(cluster.state()[0].isr) == {1, 2, 3}, "full ISR")
            leader = cluster[cluster.state()[0].leader]
            final = {base: (epoch, crc) for base, epoch, crc in leader.prints()}
            for base, print_ in story.acknowledged.items():
                assert final.get(base) == print_
            _check_high_watermarks(cluster)

    run(play())


def _check_high_watermarks(cluster: ReplicaCluster) -> None:
    for broker in cluster.brokers.values():
        for event in broker.of(HighWatermark):
            assert 0 <= event.new <= event.log_end_offset
            assert event.role == "follower" or event.new > event.old
        for event in broker.of(Truncate):
            assert event.to >= event.high_watermark, "a clean election never undoes what is committed"
