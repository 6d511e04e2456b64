"""The transitions that brokers log, by state machine, and all transitions that exist."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from harness.broker.controller.transitions import PARTITION_PREVIOUS, REPLICA_PREVIOUS
from harness.broker.coordinator.group import REBALANCES_FROM, GroupState
from harness.events import (
    BrokerRegistered,
    BrokerStart,
    BrokerStop,
    ControllerElected,
    ControllerMoved,
    ControllerReady,
    ControllerResigned,
    Election,
    Event,
    GroupStateChange,
    IsrRemove,
    IsrResult,
    LogDirectoryFailure,
    PartitionStateChange,
    ReplicaStateChange,
    Truncate,
    ZkSession,
)
from harness.store.coverage import Counts

Line = Mapping[str, Any]

PARTITION, REPLICA, GROUP = "partition", "replica", "consumer group"
ISR, ELECTION, CONTROLLER, BROKER, SESSION, LOG = "ISR", "election", "controller", "broker", "ZooKeeper session", "log"
STARTED, REGISTERED, UNREGISTERED, STOPPED, DEAD = "Started", "Registered", "Unregistered", "Stopped", "Dead"
LOADED = "loaded"
REINIT = "reinit"
"""The session is a new one: what an expired one had held is made again."""


def step(before: str, after: str) -> str:
    """Return a transition as it is written down; states without the word that is the same in all of a machine."""
    return f"{_short(before)} → {_short(after)}"


def _short(state: str) -> str:
    return state.removesuffix("Partition").removesuffix("Replica").removeprefix("Replica")


def _election(line: Line) -> str:
    leader = "unclean leader" if line["unclean"] else "leader"
    return f"{line['strategy']}: {leader if line['result'] else 'no leader'}"


_STATELESS: dict[type[Event], tuple[str, Callable[[Line], str]]] = {
    PartitionStateChange: (PARTITION, lambda line: step(line["from_state"], line["to_state"])),
    ReplicaStateChange: (REPLICA, lambda line: step(line["from_state"], line["to_state"])),
    GroupStateChange: (GROUP, lambda line: step(line["from_state"] or LOADED, line["to_state"])),
    IsrResult: (ISR, lambda line: f"{line['kind']}: {line['result']}"),
    IsrRemove: (ISR, lambda line: "remove: ok"),
    Election: (ELECTION, _election),
    ControllerElected: (CONTROLLER, lambda line: "elected"),
    ControllerReady: (CONTROLLER, lambda line: "ready"),
    ControllerResigned: (CONTROLLER, lambda line: "resigned"),
    ControllerMoved: (CONTROLLER, lambda line: "fenced"),
    LogDirectoryFailure: (LOG, lambda line: "directory failed"),
    Truncate: (LOG, lambda line: f"truncated: {line['reason']}"),
}
"""Transitions that one line shows by itself."""
_OF_LINES = {kind.ev: transition for kind, transition in _STATELESS.items()}
_OF_LIFE = {BrokerStart.ev: STARTED, BrokerRegistered.ev: REGISTERED, BrokerStop.ev: STOPPED}
KINDS = {*_OF_LINES, *_OF_LIFE, ZkSession.ev}
"""Kinds of lines that show transitions."""


class Transitions:
    """Counts those of one broker, line after line."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._life = STOPPED
        self._session = ""

    def see(self, kind: str, line: Line) -> None:
        """Count the transition in a line of one of `KINDS`."""
        if kind in _OF_LINES:
            machine, name = _OF_LINES[kind]
            self._count(machine, name(line))
        elif kind == ZkSession.ev:
            self._session_is(line["state"])
        else:
            self._life_is(_OF_LIFE[kind])

    def _session_is(self, state: str) -> None:
        if self._session:
            self._count(SESSION, step(self._session, state))
        self._session = self._session if state == REINIT else state
        if state == "lost" and self._life == REGISTERED:
            self._life_is(UNREGISTERED)

    def _life_is(self, state: str) -> None:
        if state == STARTED:
            if self._life != STOPPED:
                self._count(BROKER, step(self._life, DEAD))
            self._session = ""
        elif state != self._life:
            self._count(BROKER, step(self._life, state))
        self._life = state

    def _count(self, machine: str, name: str) -> None:
        of_machine = self._counts.setdefault(machine, {})
        of_machine[name] = of_machine.get(name, 0) + 1


def _moves(previous: Mapping[Any, Iterable[Any]]) -> set[str]:
    return {step(str(before), str(after)) for after, befores in previous.items() for before in befores}


_STRATEGIES = ("initialize", "offline", "controlled_shutdown", "preferred", "reassign")
_GROUP_PREVIOUS = {
    GroupState.PREPARING: REBALANCES_FROM,
    GroupState.COMPLETING: (GroupState.PREPARING,),
    GroupState.STABLE: (GroupState.COMPLETING, LOADED),
    GroupState.EMPTY: (GroupState.PREPARING, LOADED),
    GroupState.DEAD: (GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE),
}
_LIFE_PREVIOUS = {
    REGISTERED: (STARTED, UNREGISTERED),
    UNREGISTERED: (REGISTERED,),
    STOPPED: (STARTED, REGISTERED, UNREGISTERED),
    DEAD: (STARTED, REGISTERED, UNREGISTERED),
}
_SESSION_PREVIOUS = {
    "connected": ("suspended", "lost"),
    "suspended": ("connected",),
    "lost": ("connected", "suspended"),
    REINIT: ("connected",),
}

POSSIBLE: dict[str, set[str]] = {
    PARTITION: _moves(PARTITION_PREVIOUS),
    REPLICA: _moves(REPLICA_PREVIOUS),
    ISR: {f"{kind}: {end}" for kind in ("shrink", "expand") for end in ("ok", "badversion", "discarded", "unknown")}
    | {"remove: ok"},
    ELECTION: {f"{strategy}: {end}" for strategy in _STRATEGIES for end in ("leader", "no leader")}
    | {"offline: unclean leader"},
    CONTROLLER: {"elected", "ready", "resigned", "fenced"},
    BROKER: _moves(_LIFE_PREVIOUS),
    SESSION: _moves(_SESSION_PREVIOUS),
    GROUP: _moves(_GROUP_PREVIOUS),
    LOG: {f"truncated: {reason}" for reason in ("epoch", "hw", "out_of_range", "full", "recovery")}
    | {"directory failed"},
}
"""All transitions that there are, by state machine."""
