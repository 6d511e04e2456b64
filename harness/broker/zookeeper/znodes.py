"""Paths and contents in ZooKeeper: Kafka's own paths and JSON, encoding and decoding, pure.

Layout and field names are those of Kafka's `ZkData`; real Kafka tools can read them.
"""

import base64
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from harness.broker.configs.config import Endpoint

CLUSTER_ID = "/cluster/id"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
ISR_CHANGES = "/isr_change_notification"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = f"{CONFIG_CHANGES}/config_change_"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
TOPICS_KIND, BROKERS_KIND = "topics", "brokers"
"""Subjects of a configuration change notification."""
ALL_BROKERS = "<default>"
"""Stands for a broker id."""
LOG_DIR_EVENTS = "/log_dir_event_notification"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PRODUCER_ID_BLOCK = "/latest_producer_id_block"


LOG_DIR_EVENT_PREFIX = f"{LOG_DIR_EVENTS}/log_dir_event_"
DELETE_TOPICS = "/admin/delete_topics"

PERSISTENT_PATHS: tuple[str, ...] = (
    "/consumers",
    "/cluster",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    "/brokers/seqid",
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    LOG_DIR_EVENTS,
    TOPIC_CONFIGS,
    "/config/clients",
    "/config/users",
    BROKER_CONFIGS,
    "/config/ips",
)
"""Paths that every broker creates at its start; parents are created as needed."""


def broker_path(broker_id: int) -> str:
    """Return the path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    """Return the path of a topic's assignment."""
    return f"{TOPICS}/{topic}"


def partitions_path(topic: str) -> str:
    """Return the parent of a topic's partitions."""
    return f"{TOPICS}/{topic}/partitions"


def partition_path(topic: str, partition: int) -> str:
    """Return the parent of a partition's state."""
    return f"{TOPICS}/{topic}/partitions/{partition}"


def partition_state_path(topic: str, partition: int) -> str:
    """Return the path of a partition's leader and ISR."""
    return f"{TOPICS}/{topic}/partitions/{partition}/state"


def topic_config_path(topic: str) -> str:
    """Return the path of a topic's own configuration."""
    return f"{TOPIC_CONFIGS}/{topic}"


def broker_config_path(name: str) -> str:
    """Return the path of the configuration of a broker, or of `ALL_BROKERS`."""
    return f"{BROKER_CONFIGS}/{name}"


def config_change_path(name: str) -> str:
    """Return the path of a configuration change notification."""
    return f"{CONFIG_CHANGES}/{name}"


def delete_topic_path(topic: str) -> str:
    """Return the path of a topic's deletion request."""
    return f"{DELETE_TOPICS}/{topic}"


ISR_CHANGE_PREFIX = f"{ISR_CHANGES}/isr_change_"


class MalformedZnode(ValueError):
    """A znode has content that Kafka would not write; the message names the path."""


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


@contextmanager
def _reading(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    """Parse a znode's JSON object; any error while it is decoded is a malformed znode."""
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise TypeError("not a JSON object")
        yield value
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise MalformedZnode(f"{path}: {error!r} in {data[:200]!r}") from error


def new_uuid(rng: random.Random) -> str:
    """Return a random id in Kafka's form: 16 bytes as 22 characters of URL-safe base64."""
    return base64.urlsafe_b64encode(rng.randbytes(16)).decode().rstrip("=")


def encode_cluster_id(cluster_id: str) -> bytes:
    """Return the content of `/cluster/id`."""
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    """Return the id in `/cluster/id`."""
    with _reading(CLUSTER_ID, data) as value:
        return str(value["id"])


def encode_controller_epoch(epoch: int) -> bytes:
    """Return the content of `/controller_epoch`."""
    return str(epoch).encode()


def decode_controller_epoch(data: bytes) -> int:
    """Return the epoch in `/controller_epoch`."""
    try:
        return int(data)
    except ValueError as error:
        raise MalformedZnode(f"{CONTROLLER_EPOCH}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerZnode:
    """`/controller`: the controller's broker id."""

    broker_id: int
    timestamp_ms: int

    def encode(self) -> bytes:
        """Return the znode's content; version 2 is what Kafka since 3.4 writes."""
        return _encode(
            {"version": 2, "brokerid": self.broker_id, "timestamp": str(self.timestamp_ms), "kraftControllerEpoch": -1}
        )

    @classmethod
    def decode(cls, data: bytes) -> "ControllerZnode":
        """Read a znode's content, of any version."""
        with _reading(CONTROLLER, data) as value:
            return cls(broker_id=int(value["brokerid"]), timestamp_ms=int(value.get("timestamp", 0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """`/brokers/ids/<id>`: addresses of a live broker."""

    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str = ""
    timestamp_ms: int

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of a listener, or None."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == listener), None)

    def encode(self) -> bytes:
        """Return the znode's content, version 4; `host` and `port` are those of the PLAINTEXT listener, if any."""
        plain = self.endpoint("PLAINTEXT")
        value: dict[str, Any] = {
            "version": 4,
            "host": plain.host if plain else None,
            "port": plain.port if plain else -1,
            "jmx_port": -1,
            "timestamp": str(self.timestamp_ms),
            "endpoints": [str(end) for end in self.endpoints],
            "listener_security_protocol_map": {end.name: "PLAINTEXT" for end in self.endpoints},
        }
        if self.rack:
            value["rack"] = self.rack
        return _encode(value)

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> "BrokerRegistration":
        """Read a znode's content, versions 1 to 5."""
        with _reading(broker_path(broker_id), data) as value:
            uris = value.get("endpoints") or [f"PLAINTEXT://{value['host']}:{value['port']}"]
            return cls(
                broker_id=broker_id,
                endpoints=tuple(Endpoint.parsed(uri) for uri in uris),
                rack=value.get("rack") or "",
                timestamp_ms=int(value.get("timestamp", 0)),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStateZnode:
    """`/brokers/topics/<t>/partitions/<p>/state`: leader and ISR, by the last accepted write."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int

    def encode(self) -> bytes:
        """Return the znode's content."""
        return _encode(
            {
                "controller_epoch": self.controller_epoch,
                "leader": self.leader,
                "version": 1,
                "leader_epoch": self.leader_epoch,
                "isr": list(self.isr),
            }
        )

    @classmethod
    def decode(cls, topic: str, partition: int, data: bytes) -> "PartitionStateZnode":
        """Read a znode's content."""
        with _reading(partition_state_path(topic, partition), data) as value:
            return cls(
                leader=int(value["leader"]),
                leader_epoch=int(value["leader_epoch"]),
                isr=tuple(int(replica) for replica in value["isr"]),
                controller_epoch=int(value["controller_epoch"]),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """`/brokers/topics/<t>`: the brokers of each partition, the preferred leader first."""

    partitions: Mapping[int, tuple[int, ...]]
    topic_id: str = ""
    """Empty before version 3 of the znode."""
    adding: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Replicas that a running reassignment adds (KIP-455)."""
    removing: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Replicas that a running reassignment removes."""

    def with_partition(
        self, number: int, replicas: tuple[int, ...], *, adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
    ) -> "TopicAssignment":
        """Return the same with one partition added or changed."""
        return replace(
            self,
            partitions={**self.partitions, number: replicas},
            adding=_with(self.adding, number, adding),
            removing=_with(self.removing, number, removing),
        )

    def encode(self) -> bytes:
        """Return the znode's content: version 3 with a topic id, version 2 without."""
        value: dict[str, Any] = {"removing_replicas": _by_text(self.removing), "partitions": _by_text(self.partitions)}
        if self.topic_id:
            value["topic_id"] = self.topic_id
        value |= {"adding_replicas": _by_text(self.adding), "version": 3 if self.topic_id else 2}
        return _encode(value)

    @classmethod
    def decode(cls, topic: str, data: bytes) -> "TopicAssignment":
        """Read a znode's content, versions 1 to 3."""
        with _reading(topic_path(topic), data) as value:
            return cls(
                partitions=_by_partition(value["partitions"]),
                topic_id=value.get("topic_id") or "",
                adding=_by_partition(value.get("adding_replicas", {})),
                removing=_by_partition(value.get("removing_replicas", {})),
            )


def _with(replicas: Mapping[int, tuple[int, ...]], number: int, changed: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    others = {other: named for other, named in replicas.items() if other != number}
    return {**others, number: changed} if changed else others


def _by_text(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(replicas[partition]) for partition in sorted(replicas)}


def _by_partition(replicas: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {int(text): tuple(replicas[text]) for text in sorted(replicas, key=int)}


def encode_config(config: Mapping[str, str]) -> bytes:
    """Return the content of a configuration znode."""
    return _encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_config(path: str, data: bytes) -> dict[str, str]:
    """Return the properties in a configuration znode."""
    with _reading(path, data) as value:
        return {str(name): str(setting) for name, setting in value["config"].items()}


def encode_config_change(kind: str, name: str) -> bytes:
    """Return the content of a notification that a configuration has changed."""
    return _encode({"version": 2, "entity_path": f"{kind}/{name}"})


def changed_entity(path: str, data: bytes) -> tuple[str, str]:
    """Return kind and name of a configuration change notification's subject."""
    with _reading(path, data) as value:
        kind, _, name = str(value["entity_path"]).partition("/")
    return kind, name


def encode_isr_change(partitions: Sequence[tuple[str, int]]) -> bytes:
    """Return the content of an ISR change notification."""
    changed = [{"topic": topic, "partition": partition} for topic, partition in partitions]
    return _encode({"version": 1, "partitions": changed})


def decode_isr_change(path: str, data: bytes) -> list[tuple[str, int]]:
    """Return the partitions that an ISR change notification names."""
    with _reading(path, data) as value:
        return [(str(item["topic"]), int(item["partition"])) for item in value["partitions"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """`/latest_producer_id_block`: the last claimed ids, and the broker that claimed them."""

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        """Return the znode's content; Kafka writes the ids as text."""
        return _encode(
            {"version": 1, "broker": self.broker_id, "block_start": str(self.first), "block_end": str(self.last)}
        )

    @classmethod
    def decode(cls, data: bytes) -> "ProducerIdBlock":
        """Read the znode's content."""
        with _reading(PRODUCER_ID_BLOCK, data) as value:
            return cls(broker_id=int(value["broker"]), first=int(value["block_start"]), last=int(value["block_end"]))


_LOG_DIR_FAILED = 1
"""Kafka's number of the only event of a log directory."""


def encode_log_dir_event(broker_id: int) -> bytes:
    """Return the content of a notification that a log directory of a broker has failed."""
    return _encode({"version": 1, "broker": broker_id, "event": _LOG_DIR_FAILED})


def decode_log_dir_event(path: str, data: bytes) -> int:
    """Return the broker that a notification of a failed log directory names."""
    with _reading(path, data) as value:
        return int(value["broker"])


def decode_preferred_election(data: bytes) -> list[tuple[str, int]]:
    """Return the partitions whose preferred replicas a tool wants elected."""
    return decode_isr_change(PREFERRED_ELECTION, data)


def encode_reassignments(targets: Mapping[tuple[str, int], Sequence[int]]) -> bytes:
    """Return the content of the znode in which tools requested reassignments."""
    named = [
        {"topic": topic, "partition": partition, "replicas": list(replicas)}
        for (topic, partition), replicas in targets.items()
    ]
    return _encode({"version": 1, "partitions": named})


def decode_reassignments(data: bytes) -> dict[tuple[str, int], tuple[int, ...]]:
    """Return the requested replicas, by partition."""
    with _reading(REASSIGN_PARTITIONS, data) as value:
        return {
            (str(item["topic"]), int(item["partition"])): tuple(int(replica) for replica in item["replicas"])
            for item in value["partitions"]
        }
