"""What is known of one process from the lines that it has logged so far, for lines that do not say it again."""

from dataclasses import dataclass, field

from harness.events import ControlledPartition
from harness.values import TopicPartition

NO_EPOCH = -1
LEADER, FOLLOWER = "leader", "follower"


@dataclass(slots=True, kw_only=True)
class Replica:
    """A replica as its broker has told of it."""

    role: str
    leader_epoch: int
    isr: list[int]
    """Empty on a follower."""
    zk_version: int


@dataclass(slots=True, kw_only=True)
class ControlRequest:
    """A control request of which a part was told."""

    controller_epoch: int
    partitions: dict[TopicPartition, ControlledPartition] = field(default_factory=dict)


@dataclass(slots=True)
class ProcessState:
    """One process; the next one begins anew."""

    begun_before: bool = False
    """Whether it told something before the lines that are read, so that a replica without a role may have one."""
    session: int = 0
    """Id of its ZooKeeper session; 0 for none."""
    broker_epoch: int = -1
    """czxid of its registration."""
    expired: bool = False
    disk_error: str = ""
    """The last that it told of."""
    handed_over: bool = False
    """Whether the controller has moved all leaders away from it."""
    replicas: dict[TopicPartition, Replica] = field(default_factory=dict)
    """Those that it leads or follows."""
    log_ends: dict[TopicPartition, int] = field(default_factory=dict)
    requests: dict[tuple[int, int], "ControlRequest"] = field(default_factory=dict)
    """LeaderAndIsr requests that it is at, by sender and correlation id."""
    deletions: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    """Replicas that it is to delete: who wants it, in which controller epoch, for which leader epoch."""

    def previous_epoch(self, key: TopicPartition) -> int:
        """Return the epoch before this one; Kafka's own lines of followers have the present one for it."""
        before = self.replicas.get(key)
        return NO_EPOCH if before is None else before.leader_epoch
