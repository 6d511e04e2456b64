"""What must a broker write to its checkpoint of high watermarks? An entry for each replica that it has."""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Rule, Subject, of_broker

SETTLED_NS = 30_000_000_000
"""A checkpoint is logged when a disk, which may be slow, has it; a replica that came this shortly before may be
missing."""

_Partition = tuple[str, int]


class Hosted(Struct, frozen=True, kw_only=True):
    """The replicas of a broker."""

    since_ns: dict[_Partition, int] = {}
    """When each took its first role, on the broker's monotonic clock."""


FRESH = Hosted()

CHECKPOINT_WHOLE = Rule(
    id="checkpoint.whole",
    sentence="A checkpoint of high watermarks has every replica of its broker.",
    source="ReplicaManager.checkpointHighWatermarks, KAFKA-1647",
)


def hosts(state: Hosted | None, event: Event) -> Hosted | None:
    """A replica takes a role."""
    key = event["topic"], event["partition"]
    if state is None or key in state.since_ns:
        return state
    return replace(state, since_ns={**state.since_ns, key: event["mono"]})


def stops(state: Hosted | None, event: Event) -> Hosted | None:
    """Replicas may have been deleted."""
    if state is None or event["api"] != "StopReplica":
        return state
    named = {(each["topic"], each["partition"]) for each in event["partitions"]}
    return replace(state, since_ns={key: since for key, since in state.since_ns.items() if key not in named})


def fails(state: Hosted | None, event: Event) -> None:
    """A data directory has failed, and its replicas are in no checkpoint: nothing is known from then on."""
    return


def writes(state: Hosted | None, event: Event) -> Hosted | Illegal | None:
    """A checkpoint is on disk."""
    if state is None:
        return None
    settled = sum(since_ns < event["mono"] - SETTLED_NS for since_ns in state.since_ns.values())
    return Illegal(CHECKPOINT_WHOLE, state) if event["count"] < settled else state


SUBJECT = Subject(
    name="checkpoint",
    rules=(CHECKPOINT_WHOLE,),
    legal={
        "become_leader": hosts,
        "become_follower": hosts,
        "ctl_recv": stops,
        "log_dir_failure": fails,
        "hw_checkpoint": writes,
    },
    fresh=FRESH,
    key=of_broker,
)
