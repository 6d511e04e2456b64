import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial

import pytest

from harness.broker.administration.topic_configs import TopicConfigs
from harness.broker.configs.config import parse_config
from harness.broker.zookeeper.session import ZooKeeperSession
from harness.broker.zookeeper.znodes import encode_config
from harness.simulation.zookeeper.ensemble import Ensemble
from harness.simulation.zookeeper.session import SimulatedZooKeeper
from tests.broker.recording_state_log import RecordingStateLog
from tests.broker.sessions import simulated

CONFIG = parse_config(
    {
        "broker.id": "1",
        "listeners": "PLAINTEXT://h:1",
        "log.dir": "/d",
        "zookeeper.connect": "z",
        "min.insync.replicas": "2",
    }
)
CHANGE = b'{"version":2,"entity_path":"topics/t"}'


@pytest.fixture
async def session(zookeeper: Ensemble) -> AsyncIterator[ZooKeeperSession]:
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "3"}))
    made = ZooKeeperSession(lambda: SimulatedZooKeeper(zookeeper), RecordingStateLog([]))
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def configs(session: ZooKeeperSession) -> AsyncIterator[TopicConfigs]:
    following = TopicConfigs(CONFIG, session)
    await following.start()
    yield following
    await following.stop()


async def soon(seen: Callable[[], bool]) -> bool:
    """Whether something becomes true within a few turns of the loop."""
    for _ in range(50):
        if seen():
            return True
        await asyncio.sleep(0)
    return False


def min_isr(configs: TopicConfigs, topic: str = "t") -> int:
    return int(configs.of(topic)["min.insync.replicas"])


async def test_what_a_topic_sets_holds_and_the_brokers_word_for_the_rest(configs: TopicConfigs) -> None:
    assert min_isr(configs) == 3
    assert configs.of("t")["max.message.bytes"] == 1_048_588
    assert min_isr(configs, "unheard of") == 2


async def test_a_topic_is_read_when_it_is_first_heard_of(configs: TopicConfigs, zookeeper: Ensemble) -> None:
    zookeeper.put("/config/topics/new", encode_config({"min.insync.replicas": "1"}))
    await configs.load(["new", "without znode"])
    assert (min_isr(configs, "new"), min_isr(configs, "without znode")) == (1, 2)


async def test_a_notification_has_the_topic_read_again(configs: TopicConfigs, zookeeper: Ensemble) -> None:
    def is_read(value: str) -> bool:
        return min_isr(configs) == int(value)

    for number, value in enumerate(("4", "5")):
        zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": value}))
        zookeeper.put(f"/config/changes/config_change_{number}", CHANGE)
        assert await soon(partial(is_read, value))


async def test_without_a_notification_nothing_is_read_again(configs: TopicConfigs, zookeeper: Ensemble) -> None:
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "4"}))
    zookeeper.put("/config/changes/config_change_0", b'{"version":2,"entity_path":"topics/other"}')
    assert not await soon(lambda: min_isr(configs) == 4)


async def test_after_a_lost_connection_everything_is_read_again(
    configs: TopicConfigs, session: ZooKeeperSession, zookeeper: Ensemble
) -> None:
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "4"}))
    simulated(session.current).disconnect()
    simulated(session.current).reconnect()
    assert await soon(lambda: min_isr(configs) == 4)


async def test_nonsense_in_zookeeper_counts_as_nothing(configs: TopicConfigs, zookeeper: Ensemble) -> None:
    zookeeper.put("/config/topics/bad", encode_config({"min.insync.replicas": "many"}))
    zookeeper.put("/config/topics/worse", b"{")
    await configs.load(["bad", "worse"])
    assert (min_isr(configs, "bad"), min_isr(configs, "worse")) == (2, 2)


async def test_a_property_in_zookeeper_that_nobody_knows_costs_the_others_nothing(
    configs: TopicConfigs, zookeeper: Ensemble, caplog: pytest.LogCaptureFixture
) -> None:
    zookeeper.put("/config/topics/odd", b'{"version":1,"config":{"min.insync.replica":"3","min.insync.replicas":"5"}}')
    await configs.load(["odd"])
    assert min_isr(configs, "odd") == 5
    assert "unknown topic property min.insync.replica (did you mean min.insync.replicas?)" in caplog.text


async def test_listeners_hear_of_changes_alone(
    configs: TopicConfigs, session: ZooKeeperSession, zookeeper: Ensemble
) -> None:
    heard: list[tuple[str, int]] = []
    configs.on_change(lambda topic, config: heard.append((topic, config["min.insync.replicas"])))
    await configs.load(["new"])
    simulated(session.current).disconnect()
    simulated(session.current).reconnect()
    assert not await soon(lambda: bool(heard))
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "4"}))
    simulated(session.current).disconnect()
    simulated(session.current).reconnect()
    assert await soon(lambda: heard == [("t", 4)])


async def test_after_a_new_session_everything_is_read_again_and_followed(
    configs: TopicConfigs, session: ZooKeeperSession, zookeeper: Ensemble
) -> None:
    simulated(session.current).expire()
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "4"}))
    assert await soon(lambda: min_isr(configs) == 4)
    zookeeper.put("/config/topics/t", encode_config({"min.insync.replicas": "5"}))
    zookeeper.put("/config/changes/config_change_0", CHANGE)
    assert await soon(lambda: min_isr(configs) == 5)


@pytest.mark.parametrize(
    ("layer", "value"),
    [pytest.param("1", "4", id="set for this broker alone"), pytest.param("<default>", "5", id="set for all brokers")],
)
async def test_what_is_set_for_brokers_holds_for_topics_that_say_nothing(
    configs: TopicConfigs, zookeeper: Ensemble, layer: str, value: str
) -> None:
    heard: list[tuple[int, int]] = []
    configs.on_broker_change(lambda *seen: heard.append(tuple(s["min.insync.replicas"] for s in seen)))
    await configs.load(["quiet"])
    zookeeper.put(f"/config/brokers/{layer}", encode_config({"min.insync.replicas": value}))
    zookeeper.put("/config/changes/config_change_0", f'{{"version":2,"entity_path":"brokers/{layer}"}}'.encode())
    assert await soon(lambda: min_isr(configs, "quiet") == int(value))
    assert (min_isr(configs, "t"), min_isr(configs, "unheard of")) == (3, int(value))
    assert (configs.broker("min.insync.replicas"), heard) == (int(value), [(2, int(value))])


async def test_what_is_set_for_this_broker_goes_before_what_is_set_for_all(
    configs: TopicConfigs, session: ZooKeeperSession, zookeeper: Ensemble
) -> None:
    zookeeper.put("/config/brokers/<default>", encode_config({"min.insync.replicas": "5", "log.segment.bytes": "99"}))
    zookeeper.put("/config/brokers/1", encode_config({"min.insync.replicas": "4"}))
    simulated(session.current).disconnect()
    simulated(session.current).reconnect()
    assert await soon(lambda: configs.of("x")["segment.bytes"] == 99)
    assert min_isr(configs, "x") == 4


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(encode_config({"min.insync.replicas": "many"}), id="no number"),
        pytest.param(encode_config({"broker.rack": "r"}), id="not to be set while it runs"),
        pytest.param(b"{", id="no configuration"),
    ],
)
async def test_nonsense_for_brokers_counts_as_nothing(
    configs: TopicConfigs, session: ZooKeeperSession, zookeeper: Ensemble, content: bytes
) -> None:
    zookeeper.put("/config/brokers/1", content)
    zookeeper.put("/config/brokers/<default>", encode_config({"min.insync.replicas": "5"}))
    simulated(session.current).disconnect()
    simulated(session.current).reconnect()
    assert await soon(lambda: min_isr(configs, "x") == 5)


async def test_old_notifications_are_deleted(configs: TopicConfigs, zookeeper: Ensemble) -> None:
    zookeeper.put("/config/changes/config_change_0", CHANGE)
    await asyncio.sleep(14 * 60)
    zookeeper.put("/config/changes/config_change_1", CHANGE)
    await asyncio.sleep(2 * 60)
    assert zookeeper.names("/config/changes") == ["config_change_0", "config_change_1"]
    zookeeper.put("/config/changes/config_change_2", CHANGE)
    assert await soon(lambda: zookeeper.names("/config/changes") == ["config_change_1", "config_change_2"])
