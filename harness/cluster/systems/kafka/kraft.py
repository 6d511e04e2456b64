"""What is different about a broker without ZooKeeper: some are controllers, and its storage is formatted first."""

import base64
import hashlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from harness.broker.log.meta_properties import META_PROPERTIES
from harness.cluster.broker_properties import CLIENT_LISTENER, PEER_LISTENER

if TYPE_CHECKING:
    from harness.cluster.broker_properties import DriverProperties
    from harness.cluster.layout import ClusterLayout

CONTROLLER_LISTENER = "CONTROLLER"
SESSION_TIMEOUT, ZOOKEEPER_SESSION_TIMEOUT = "broker.session.timeout.ms", "zookeeper.session.timeout.ms"
HEARTBEATS = 4
"""How many heartbeats of a broker fit into its session."""
_OF_ZOOKEEPER = "zookeeper."
_ADVERTISED = "advertised.listeners"
_OF_BROKERS = (_ADVERTISED, "inter.broker.listener.name")
_SHELL = "/bin/sh"
_LETTERS = 0x3F
"""What keeps the first six bits of a byte within those that base 64 has letters for."""


def session_timeout(requested: Mapping[str, str], usual: Mapping[str, str]) -> dict[str, str]:
    """Return the time after which a silent broker is missed, by both of its names: as requested, else as usual."""
    timeout = requested.get(SESSION_TIMEOUT, usual[ZOOKEEPER_SESSION_TIMEOUT])
    return {SESSION_TIMEOUT: timeout, ZOOKEEPER_SESSION_TIMEOUT: timeout}


def changed(
    broker_id: int, driver: "DriverProperties", *, broker: bool, advertises: bool
) -> Callable[[dict[str, str]], dict[str, str]]:
    """Return what makes properties of those of a broker with ZooKeeper, for a broker, or a controller that is none.

    Where controllers may advertise nothing, only the list of voters says where each is reached.
    """

    def change(own: dict[str, str]) -> dict[str, str]:
        timeout = session_timeout(own, own)[SESSION_TIMEOUT]
        own_properties = {
            name: value for name, value in own.items() if not name.startswith(_OF_ZOOKEEPER) and name != "broker.id"
        }
        roles, listeners, advertised = [], [], []
        if broker:
            roles, listeners, advertised = ["broker"], [own["listeners"]], [own[_ADVERTISED]]
        else:
            for name in _OF_BROKERS:
                del own_properties[name]
        if broker_id in driver.controllers:
            reached, bound = driver.controllers[broker_id], driver.controller_listens_on
            roles.append("controller")
            listeners.append(f"{CONTROLLER_LISTENER}://{bound or reached}")
            advertised += [f"{CONTROLLER_LISTENER}://{reached}"] if bound and advertises else []
        return {
            SESSION_TIMEOUT: timeout,
            "broker.heartbeat.interval.ms": str(int(timeout) // HEARTBEATS),
            **own_properties,
            "node.id": str(broker_id),
            "process.roles": ",".join(roles),
            "listeners": ",".join(listeners),
            **({_ADVERTISED: ",".join(advertised)} if advertised else {}),
            "controller.listener.names": CONTROLLER_LISTENER,
            "listener.security.protocol.map": ",".join(
                f"{name}:PLAINTEXT" for name in (CLIENT_LISTENER, PEER_LISTENER, CONTROLLER_LISTENER)
            ),
            "controller.quorum.voters": ",".join(f"{id_}@{place}" for id_, place in driver.controllers.items()),
        }

    return change


def formatted_once(java: Sequence[str], layout: "ClusterLayout", broker_id: int, start: Sequence[str]) -> list[str]:
    """Return the command that starts a broker, after its storage was formatted where that is new.

    The process becomes the broker, so signals to it reach the broker.
    """
    config = str(layout.config_file(broker_id).resolve())
    tool = [
        *java,
        "kafka.tools.StorageTool",
        "format",
        "--ignore-formatted",
        "-t",
        cluster_id(layout.run_id),
        "-c",
        config,
    ]
    mark = layout.log_dir(broker_id).resolve() / META_PROPERTIES
    script = f"[ -e {shlex.quote(str(mark))} ] || {shlex.join(tool)} || exit 1; exec {shlex.join(start)}"
    return [_SHELL, "-c", script]


def cluster_id(run_id: str) -> str:
    """Return a run's cluster id in the form that Kafka has: 16 bytes in base 64 for URLs, without padding.

    It begins with a letter: the tool would take a hyphen for an option.
    """
    first, *rest = hashlib.sha256(run_id.encode()).digest()[:16]
    return base64.urlsafe_b64encode(bytes([first & _LETTERS, *rest])).decode().rstrip("=")
