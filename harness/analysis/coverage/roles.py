"""What was each broker when a fault began, and was every replica in sync? By the brokers' own lines.

They are ordered by the clock of the machine: good for counting, never for a verdict.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harness.broker.controller.transitions import PartitionStatus
from harness.events import (
    BecomeFollower,
    BecomeLeader,
    BrokerStart,
    BrokerStop,
    ControllerElected,
    Election,
    Event,
    IsrRemove,
    IsrResult,
    PartitionStateChange,
)
from harness.kafka.placement import partition_of
from harness.store.coverage import Played
from harness.values import OFFSETS_TOPIC

_OF_ROLES: tuple[type[Event], ...] = (BecomeFollower, BecomeLeader, BrokerStart, BrokerStop, ControllerElected)
_OF_SYNC: tuple[type[Event], ...] = (Election, IsrRemove, IsrResult, PartitionStateChange)
KINDS = {kind.ev for kind in (*_OF_ROLES, *_OF_SYNC)}
"""Kinds of lines about either."""

Partition = tuple[str, int]


class Situation:
    """Leaders, followers and controller of a cluster, and partitions with an incomplete ISR."""

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = frozenset(groups)
        self._replicas: dict[Partition, dict[int, bool]] = {}
        """Of each partition the brokers that replicate it, and whether each leads."""
        self._controller = -1
        self._assigned: dict[Partition, int] = {}
        self._in_sync: dict[Partition, int] = {}

    @property
    def is_in_sync(self) -> bool:
        """Whether every partition's ISR has all its replicas, by the lines read so far."""
        return all(self._in_sync.get(name, assigned) >= assigned for name, assigned in self._assigned.items())

    def roles_of(self, broker: int) -> list[Played]:
        """Return everything that a broker is now."""
        leads = {name for name, replicas in self._replicas.items() if replicas.get(broker)}
        follows = any(broker in replicas and not replicas[broker] for replicas in self._replicas.values())
        roles = {
            Played.CONTROLLER: self._controller == broker,
            Played.LEADER: any(topic != OFFSETS_TOPIC for topic, _ in leads),
            Played.FOLLOWER: follows,
            Played.COORDINATOR: not leads.isdisjoint(self._offsets()),
        }
        return [role for role, has_it in roles.items() if has_it] or [Played.NONE]

    def _offsets(self) -> Iterator[Partition]:
        """Yield the partitions that hold the groups of the run."""
        count = sum(topic == OFFSETS_TOPIC for topic, _ in self._replicas)
        yield from ((OFFSETS_TOPIC, partition_of(group, count)) for group in self._groups if count)

    def see(self, kind: str, line: Mapping[str, Any]) -> None:
        """Take in a line of one of `KINDS`."""
        broker = line["broker"]
        if kind == ControllerElected.ev:
            self._controller = broker
        elif kind in (BrokerStart.ev, BrokerStop.ev):
            self._is_gone(broker)
        else:
            self._of_partition(kind, (line["topic"], line["partition"]), broker, line)

    def _is_gone(self, broker: int) -> None:
        for replicas in self._replicas.values():
            replicas.pop(broker, None)
        if self._controller == broker:
            self._controller = -1

    def _of_partition(self, kind: str, name: Partition, broker: int, line: Mapping[str, Any]) -> None:
        if kind == BecomeLeader.ev:
            replicas = self._replicas.setdefault(name, {})
            replicas.update(dict.fromkeys(replicas, False) | {broker: True})
        elif kind == BecomeFollower.ev:
            self._replicas.setdefault(name, {})[broker] = False
        elif kind == PartitionStateChange.ev:
            if line["to_state"] == PartitionStatus.NON_EXISTENT:
                for known in (self._replicas, self._assigned, self._in_sync):
                    known.pop(name, None)
        elif kind == IsrResult.ev:
            if line["result"] == "ok":
                self._in_sync[name] = len(line["new"])
        elif line["result"]:
            self._in_sync[name] = len(line["result"]["isr"])
            self._assigned[name] = len(line["assigned"]) if kind == Election.ev else self._assigned.get(name, 0)
