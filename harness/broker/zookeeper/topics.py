"""Topics in ZooKeeper: creating one, and reading its configuration."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from harness.broker.zookeeper.client import ANY_VERSION, NodeExists, NoNode, ZooKeeper, ZooKeeperError
from harness.broker.zookeeper.pipeline import all_of
from harness.broker.zookeeper.znodes import (
    CONFIG_CHANGE_PREFIX,
    TOPICS_KIND,
    MalformedZnode,
    TopicAssignment,
    broker_config_path,
    decode_config,
    delete_topic_path,
    encode_config,
    encode_config_change,
    topic_config_path,
    topic_path,
)
from harness.values import TopicPartition

log = logging.getLogger(__name__)

ANSWER_S = 1.0
"""So long `is_deleted` waits for ZooKeeper."""


class TopicExists(Exception):
    """The topic is there already."""


async def create_topic(
    zk: ZooKeeper,
    name: str,
    assignment: Mapping[int, Sequence[int]],
    config: Mapping[str, str],
    topic_id: str = "",
) -> None:
    """Write a topic's configuration, then its assignment; the controller finds it there and does the rest.

    Two writes, not one transaction, as in Kafka's `AdminZkClient`: a crash in between leaves a configuration
    without a topic, which a later creation replaces. `topic_id` is a `znodes.new_uuid`, or empty for none.

    Raises:
        TopicExists: it is there already.
    """
    if await zk.exists(topic_path(name)) is not None:
        raise TopicExists(f"topic {name} exists already")
    await _set_or_create(zk, topic_config_path(name), encode_config(config))
    znode = TopicAssignment(partitions={number: tuple(assignment[number]) for number in assignment}, topic_id=topic_id)
    try:
        await zk.create(topic_path(name), znode.encode())
    except NodeExists as error:
        raise TopicExists(f"topic {name} exists already") from error


async def read_topic_config(zk: ZooKeeper, topic: str) -> dict[str, str]:
    """Return the properties set for a topic itself, without the broker's defaults; empty when there are none."""
    return await read_config(zk, topic_config_path(topic))


async def read_config(zk: ZooKeeper, path: str) -> dict[str, str]:
    """Return the properties in a configuration znode; empty when there is none.

    Raises:
        MalformedZnode: its content is invalid.
    """
    try:
        data, _ = await zk.get(path)
    except NoNode:
        return {}
    return decode_config(path, data)


async def write_config(zk: ZooKeeper, kind: str, name: str, config: Mapping[str, str]) -> None:
    """Replace the configuration of a topic or broker, and notify all brokers; the last writer wins."""
    path = topic_config_path(name) if kind == TOPICS_KIND else broker_config_path(name)
    await _set_or_create(zk, path, encode_config(config))
    await zk.create(CONFIG_CHANGE_PREFIX, encode_config_change(kind, name), sequential=True)


async def read_topic_assignment(zk: ZooKeeper, topic: str) -> TopicAssignment | None:
    """Return a topic's assignment, or None when there is no such topic; arms the topic's node handler.

    An invalid znode counts as none: it must not keep a controller from taking over.
    """
    try:
        data, _ = await zk.get(topic_path(topic))
        return TopicAssignment.decode(topic, data)
    except NoNode:
        return None
    except MalformedZnode as error:
        log.error("topic.ignored error=%s", error)
        return None


async def is_deleted(zk: ZooKeeper, partition: TopicPartition) -> bool:
    """Return whether a partition is in no assignment, or its topic is queued for deletion; False without an answer."""
    topic, number = partition
    try:
        async with asyncio.timeout(ANSWER_S):
            assignment = await read_topic_assignment(zk, topic)
            is_assigned = assignment is not None and number in assignment.partitions
            return not is_assigned or await zk.exists(delete_topic_path(topic)) is not None
    except (ZooKeeperError, TimeoutError):
        return False


async def znodes_below(zk: ZooKeeper, path: str) -> list[list[str]]:
    """Return a znode and all below it, deepest first, in groups of which none is above another; empty without it."""
    levels = [[path]] if await zk.exists(path) is not None else []
    while levels and levels[0]:
        families = await all_of(_children(zk, parent) for parent in levels[0])
        levels.insert(0, [child for children in families for child in children])
    return levels[1:]


async def _children(zk: ZooKeeper, path: str) -> list[str]:
    try:
        return [f"{path}/{name}" for name in await zk.children(path)]
    except NoNode:
        return []


async def _set_or_create(zk: ZooKeeper, path: str, data: bytes) -> None:
    try:
        await zk.set(path, data, ANY_VERSION)
    except NoNode:
        try:
            await zk.create(path, data)
        except NodeExists:
            await zk.set(path, data, ANY_VERSION)
