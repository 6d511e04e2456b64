"""Which steps may a group coordinator take with one partition of `__consumer_offsets`?"""

from msgspec import Struct
from msgspec.structs import replace

from harness.model.step import Event, Illegal, Key, Rule, Subject
from harness.values import OFFSETS_TOPIC


class Coordinated(Struct, frozen=True, kw_only=True):
    """One partition of the offsets topic as its broker's log shows it."""

    leader_epoch: int | None = None
    """In which it is led here; None where it is not, or it is unknown."""
    loaded: bool = False
    lost: bool = False
    """Whether the lead was lost since it was loaded, and no line says that it was unloaded."""


FRESH = Coordinated()

UNLOADED = Rule(
    id="coordinator.unloaded",
    sentence="A coordinator that has lost a partition unloads its groups before it loads them again.",
    source="GroupCoordinator.onResignation, GroupMetadataManager.removeGroupsForPartition",
)


def leads(state: Coordinated | None, event: Event) -> Coordinated:
    """The broker leads the partition."""
    return replace(state or FRESH, leader_epoch=event["leader_epoch"])


def follows(state: Coordinated | None, event: Event) -> Coordinated:
    """Another broker leads it."""
    known = state or FRESH
    return replace(known, leader_epoch=None, lost=known.loaded)


def loads(state: Coordinated | None, event: Event) -> Coordinated | Illegal:
    """All groups of the partition are there."""
    known = state or FRESH
    after = Coordinated(leader_epoch=known.leader_epoch, loaded=True)
    return Illegal(UNLOADED, after) if known.lost else after


def unloads(state: Coordinated | None, event: Event) -> Coordinated:
    """No group of the partition is there any more."""
    return Coordinated(leader_epoch=(state or FRESH).leader_epoch)


def _of_offsets(event: Event) -> Key:
    topic = event.get("topic", OFFSETS_TOPIC)
    return topic, event["partition"]


SUBJECT = Subject(
    name="coordinator",
    rules=(UNLOADED,),
    legal={"become_leader": leads, "become_follower": follows, "gc_load": loads, "gc_unload": unloads},
    fresh=FRESH,
    key=_of_offsets,
)
