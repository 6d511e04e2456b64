"""The relay in front of an existing cluster, whose brokers advertise the relay's addresses to clients."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.cluster.layout import broker_process
from harness.cluster.relay import CLIENTS, SOCKET_NAME
from harness.cluster.relay.listeners import Listener, Setup
from harness.cluster.supervised_driver import tail_of
from harness.errors import ClusterError
from harness.system.waiting import until

LISTENING_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """How clients' connections reach one broker."""

    listen: str
    """host:port at which the relay listens, and which the broker advertises."""
    target: str
    """host:port of the broker's own listener."""


def setup_of(forwards: Mapping[int, Forward], listens_on: str) -> Setup:
    """Return what a relay needs to forward these connections.

    It listens at `listens_on`, or else at the addresses of the hosts in `listen`.
    """
    listeners = []
    for broker_id, forward in forwards.items():
        host, _, port = forward.listen.rpartition(":")
        target, _, target_port = forward.target.rpartition(":")
        listener = Listener(
            port=int(port),
            host=listens_on or host,
            destination=broker_process(broker_id),
            target=target,
            target_port=int(target_port),
            source=CLIENTS,
        )
        listeners.append(listener)
    return Setup(listeners=listeners)


async def listening(folder: Path, log: Path, ended: Callable[[], Awaitable[bool]]) -> None:
    """Return when the relay in a folder listens; raises ClusterError if it ends, with the end of its log."""

    async def said() -> str:
        if await ended():
            raise _Ended
        return "it listens" if (folder / SOCKET_NAME).exists() else ""

    try:
        await until(said, bool, what="the relay", timeout_s=LISTENING_TIMEOUT_S)
    except _Ended:
        raise ClusterError(f"the relay cannot listen: {(tail_of(log) or ['it said nothing'])[-1]}") from None


class _Ended(Exception):
    """Its process ended."""


def not_advertised(forwards: Mapping[int, Forward], advertised: Mapping[int, str]) -> str:
    """Return which brokers lead clients past the relay; empty if none does."""
    return "; ".join(
        f"broker {broker_id} advertises {advertised[broker_id]} to clients of {forward.target}, which leads past the"
        f" relay: its advertised.listeners must have {forward.listen} for this listener"
        for broker_id, forward in sorted(forwards.items())
        if broker_id in advertised and advertised[broker_id] != forward.listen
    )
