"""Which steps may a controller take to delete a topic, within its term?"""

from msgspec import Struct

from harness.model.step import Event, Illegal, Key, Rule, Subject

STARTED, INELIGIBLE = "ReplicaDeletionStarted", "ReplicaDeletionIneligible"
PARTITION_GONE = "NonExistentPartition"
CONFIG, REQUEST, TOPICS = "/config/topics/", "/admin/delete_topics/", "/brokers/topics/"


class Deletion(Struct, frozen=True, kw_only=True):
    """The deletion of one topic; None is unknown."""

    waiting: frozenset[tuple[int, int]] | None = None
    """Replicas, as partition and broker, that were told to delete and have not answered."""
    partitions_gone: frozenset[int] = frozenset()
    znode_gone: bool = False


FRESH = Deletion(waiting=frozenset())

REPLICAS_FIRST = Rule(
    id="deletion.replicas-first",
    sentence="The znode of a topic is removed when every replica that had to delete its log has done so.",
    source="TopicDeletionManager.completeDeleteTopic",
)
REQUEST_LAST = Rule(
    id="deletion.request-last",
    sentence="The znode of a deleted topic is removed before its configuration and the request to delete it.",
    source="TopicDeletionManager.completeDeleteTopic",
)


def moves_partition(state: Deletion | None, event: Event) -> Deletion | Illegal:
    """A partition is in another state."""
    state = state or Deletion()
    if event["to_state"] != PARTITION_GONE:
        return state
    gone = state.partitions_gone | {event["partition"]}
    return Deletion(waiting=state.waiting, partitions_gone=gone, znode_gone=state.znode_gone)


def moves_replica(state: Deletion | None, event: Event) -> Deletion | Illegal:
    """A replica is in another state."""
    state = state or Deletion()
    if state.waiting is None:
        return state
    replica, now = (event["partition"], event["replica"]), event["to_state"]
    waiting = state.waiting | {replica} if now in (STARTED, INELIGIBLE) else state.waiting - {replica}
    return Deletion(waiting=waiting, partitions_gone=state.partitions_gone, znode_gone=state.znode_gone)


def writes(state: Deletion | None, event: Event) -> Deletion | Illegal:
    """A znode of the topic is deleted."""
    state = state or Deletion()
    path = event["path"]
    if path.startswith(TOPICS):
        gone = Deletion(waiting=state.waiting, partitions_gone=state.partitions_gone, znode_gone=True)
        return Illegal(REPLICAS_FIRST, gone) if state.waiting else gone
    begun = state.waiting is not None and bool(state.partitions_gone)
    return Illegal(REQUEST_LAST, state) if begun and not state.znode_gone else state


def _of_topic(event: Event) -> Key:
    return event["topic"], event["controller_epoch"]


def _of_znode(event: Event) -> list[tuple[Key, Event]]:
    """Return the topic whose znode, configuration or request a controller has deleted.

    The topic's znode is gone after `nonode` too: the answer to an earlier request may have been lost.
    """
    path: str = event["path"]
    if event["op"] != "delete" or event["by"] != "controller":
        return []
    folders = {"ok": (CONFIG, REQUEST, TOPICS), "nonode": (TOPICS,)}.get(event["result"], ())
    for folder in folders:
        if path.startswith(folder) and "/" not in (topic := path.removeprefix(folder)):
            return [((topic, event["controller_epoch"]), event)]
    return []


SUBJECT = Subject(
    name="deletion",
    rules=(REPLICAS_FIRST, REQUEST_LAST),
    legal={"partition_state": moves_partition, "replica_state": moves_replica, "zk_write": writes},
    fresh=FRESH,
    key=_of_topic,
    parts={"zk_write": _of_znode},
)
