"""The upgrade of brokers to a later release: what proves it, what does not, and what becomes of one that fails."""

import asyncio
from typing import Any

import pytest

from harness.contracts.faults import Effect
from harness.errors import ClusterError, DeadlineError, ScenarioError
from harness.system.process_state import ProcessState
from harness.verdict import FaultVerdict
from tests.fake_cluster import FakeCluster
from tests.faults.injecting import heal, injected, prepared
from tests.raising import raising

CONFIRMED, MISMATCH, INCONCLUSIVE = FaultVerdict.CONFIRMED, FaultVerdict.MISMATCH, FaultVerdict.INCONCLUSIVE
OLD, NEW = "kafka:3.3.2", "kafka:3.9.1"
STOPPED = ["stop_broker 1", f"change_release 1 {NEW}"]


@pytest.fixture
def kafka(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """A cluster of an early release, whose faults wait for a tenth of a second."""
    cluster.system = OLD
    monkeypatch.setattr("kafka_chaos.faults.upgrade.CONFIRM_TIMEOUT_S", 0.1)
    return cluster


async def upgraded(cluster: FakeCluster, *brokers: int, to: str = "3.9.1", **parameters: Any) -> Effect:
    _, effect = await injected(cluster, "upgrade", *brokers, to=to, in_sync_timeout_s=0.1, **parameters)
    return effect


async def test_brokers_are_upgraded_one_by_one_and_stay_what_they_are(kafka: FakeCluster) -> None:
    injection, effect = await injected(kafka, "upgrade", 2, 1, to="3.9.1")
    assert effect == Effect(
        verdict=CONFIRMED,
        detail=(
            "broker 2 was kafka:3.3.2, stopped cleanly, and says that it is 3.9.1; registered again with czxid 200, it"
            " is in its ISRs; broker 1 was kafka:3.3.2, stopped cleanly, and says that it is 3.9.1; registered again"
            " with czxid 201, it is in its ISRs"
        ),
    )
    calls = ["stop_broker 2", f"change_release 2 {NEW}", "start_broker 2", *STOPPED, "start_broker 1"]
    assert kafka.calls == calls
    await heal(kafka, injection)
    assert kafka.calls == calls


@pytest.mark.parametrize(
    ("deaf", "detail"),
    [
        pytest.param("stop_broker", "broker 1 logged no clean stop", id="it does not stop"),
        pytest.param("version", "the release that broker 1 says it is: not within", id="it does not say what it is"),
        pytest.param(
            "change_release", "broker 1 says that it is 3.3.2, not 3.9.1", id="it is what it was when it comes back"
        ),
    ],
)
async def test_what_has_not_happened_is_a_mismatch(kafka: FakeCluster, deaf: str, detail: str) -> None:
    kafka.deaf = {deaf}
    effect = await upgraded(kafka, 1)
    assert effect.verdict is MISMATCH
    assert detail in effect.detail


async def test_a_stop_that_is_not_controlled_is_a_mismatch(kafka: FakeCluster) -> None:
    kafka.controlled = False
    assert await upgraded(kafka, 1) == Effect(verdict=MISMATCH, detail="broker 1 logged a stop that was not controlled")


async def test_a_broker_that_keeps_its_registration_is_a_mismatch(kafka: FakeCluster) -> None:
    kafka.next_session = 101
    effect = await upgraded(kafka, 1)
    assert effect.verdict is MISMATCH
    assert "a later registration of broker 1: not within" in effect.detail


async def test_a_broker_that_stays_out_of_its_isrs_is_a_mismatch(
    kafka: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = kafka.start_broker

    async def lagging(broker_id: int) -> None:
        await start(broker_id)
        kafka.isr = [0, 2]

    monkeypatch.setattr(kafka, "start_broker", lagging)
    effect = await upgraded(kafka, 1)
    assert effect.verdict is MISMATCH
    assert "broker 1 in its ISRs: not within" in effect.detail
    assert "orders-0 has the ISR [0, 2]" in effect.detail


async def test_another_replica_that_is_out_of_its_isr_says_nothing_of_it(
    kafka: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = kafka.start_broker

    async def without_another(broker_id: int) -> None:
        await start(broker_id)
        kafka.isr = [0, 1]

    monkeypatch.setattr(kafka, "start_broker", without_another)
    assert (await upgraded(kafka, 1)).verdict is CONFIRMED


async def test_no_broker_goes_while_a_replica_is_not_in_sync(kafka: FakeCluster) -> None:
    kafka.isr = [0, 1]
    with pytest.raises(ClusterError, match=r"every replica in sync: .*orders-0 has the ISR \[0, 1\] of \[0, 1, 2\]"):
        await upgraded(kafka, 1)
    assert kafka.calls == []


async def test_a_broker_that_does_not_run_is_inconclusive(kafka: FakeCluster) -> None:
    await kafka.kill_broker(1)
    kafka.calls.clear()
    assert (await upgraded(kafka, 1)).verdict is INCONCLUSIVE
    assert kafka.calls == []


async def test_a_broker_that_was_that_release_is_inconclusive(kafka: FakeCluster) -> None:
    assert (await upgraded(kafka, 1)).verdict is CONFIRMED
    kafka.calls.clear()
    assert await upgraded(kafka, 0, 1) == Effect(verdict=INCONCLUSIVE, detail="broker [1] was that release before")
    assert kafka.calls == []


async def test_a_broker_that_is_a_later_release_already_is_not_downgraded(kafka: FakeCluster) -> None:
    kafka.system = "kafka:2.8.2"
    assert (await upgraded(kafka, 1)).verdict is CONFIRMED
    kafka.calls.clear()
    with pytest.raises(ScenarioError, match=r"3\.3\.2 is no later release than 3\.9\.1"):
        await upgraded(kafka, 1, to="3.3.2")
    assert kafka.calls == []


async def test_nobody_is_upgraded_beside_a_broker_that_is_a_later_release_already(kafka: FakeCluster) -> None:
    kafka.system = "kafka:2.8.2"
    assert (await upgraded(kafka, 2)).verdict is CONFIRMED
    kafka.calls.clear()
    with pytest.raises(ScenarioError, match=r"3\.3\.2 is no later release than 3\.9\.1"):
        await upgraded(kafka, 1, 2, to="3.3.2")
    assert kafka.calls == []


async def test_a_broker_that_does_not_come_up_goes_back_to_what_it_was(kafka: FakeCluster) -> None:
    kafka.broken = {"start_broker"}
    injection, effect = await injected(kafka, "upgrade", 1, 2, to="3.9.1")
    assert effect == Effect(verdict=MISMATCH, detail="broker 1 did not come up as kafka:3.9.1: start_broker is broken")
    kafka.broken = set()
    await heal(kafka, injection)
    assert kafka.calls == [*STOPPED, "start_broker 1", f"change_release 1 {OLD}", "start_broker 1"]
    assert kafka.states[1] == ProcessState.RUNNING


@pytest.mark.parametrize(
    ("state", "killed"),
    [
        pytest.param(ProcessState.RUNNING, ["kill_broker 1"], id="and is killed, if it runs"),
        pytest.param(
            ProcessState.STOPPED, [], id="and is not killed, if its old registration kept it from being started"
        ),
    ],
)
async def test_a_broker_that_hangs_in_its_start_goes_back_to_what_it_was(
    state: ProcessState, killed: list[str], kafka: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = kafka.start_broker

    async def hanging(broker_id: int) -> None:
        kafka.states[broker_id] = state
        await asyncio.Event().wait()

    monkeypatch.setattr(kafka, "start_broker", hanging)
    injection, effect = await injected(kafka, "upgrade", 1, 2, to="3.9.1", start_timeout_s=0.1)
    assert effect == Effect(verdict=MISMATCH, detail=f"broker 1 did not come up as {NEW} within 0.1 s")
    monkeypatch.setattr(kafka, "start_broker", start)
    await heal(kafka, injection)
    assert kafka.calls == [*STOPPED, *killed, f"change_release 1 {OLD}", "start_broker 1"]
    assert kafka.states[1] == ProcessState.RUNNING


async def test_of_a_long_reason_the_first_line_is_told_and_the_end_of_the_log(
    kafka: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "broker-1 ended with status 1; the end of its log:\nIt starts\nIt found no jar"
    monkeypatch.setattr(kafka, "start_broker", raising(ClusterError(lines)))
    effect = await upgraded(kafka, 1)
    assert effect.detail.endswith("kafka:3.9.1: broker-1 ended with status 1; the end of its log: It found no jar")


async def test_a_harness_that_dies_before_the_start_leaves_what_can_be_healed_from_what_it_had_noted(
    kafka: FakeCluster,
) -> None:
    injection = await prepared(kafka, "upgrade", 1, to="3.9.1")
    await kafka.stop_broker(1, timeout_s=1)
    await kafka.change_release(1, NEW)
    await heal(kafka, injection)
    assert kafka.calls == [*STOPPED, f"change_release 1 {OLD}", "start_broker 1"]


async def test_a_broker_that_stops_late_ends_it_and_is_started_as_it_was(
    kafka: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = kafka.stop_broker
    monkeypatch.setattr(kafka, "stop_broker", raising(DeadlineError("broker 1 did not stop within 0.1 s")))
    injection, effect = await injected(kafka, "upgrade", 1, 2, to="3.9.1", stop_timeout_s=0.1)
    assert effect == Effect(verdict=MISMATCH, detail="broker 1 did not stop within 0.1 s")
    healing = asyncio.create_task(heal(kafka, injection))
    await asyncio.sleep(0)
    await stop(1, timeout_s=1)
    await healing
    assert kafka.calls == ["stop_broker 1", f"change_release 1 {OLD}", "start_broker 1"]
