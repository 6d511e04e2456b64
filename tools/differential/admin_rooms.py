"""Random calls of administrators: topics and their configuration."""

from typing import Any

from harness.client_rules.scripts.script import Step
from tools.differential.data_rooms import TOPIC_CONFIGS
from tools.differential.draws import Draw

CONFIGS = (
    *TOPIC_CONFIGS,
    ("retention.ms", "-1"),
    ("retention.ms", "100000000"),
    ("retention.bytes", "1000000000"),
    ("cleanup.policy", "delete,compact"),
    ("min.insync.replicas", "1"),
    ("unclean.leader.election.enable", "true"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("delete.retention.ms", "0"),
    ("flush.messages", "10"),
    ("preallocate", "false"),
    ("max.compaction.lag.ms", "5000"),
    ("min.compaction.lag.ms", "100"),
    ("segment.jitter.ms", "10"),
    ("message.downconversion.enable", "false"),
    ("file.delete.delay.ms", "100"),
)
BAD_CONFIGS = (
    ("retention.ms", "x"),
    ("retention.ms", "-2"),
    ("retention.ms", ""),
    ("retention.ms", None),
    ("segment.bytes", "5"),
    ("segment.bytes", "3000000000"),
    ("cleanup.policy", "nothing"),
    ("compression.type", "zip"),
    ("min.insync.replicas", "0"),
    ("min.cleanable.dirty.ratio", "1.5"),
    ("preallocate", "maybe"),
    ("unknown.config", "1"),
    ("", "1"),
    ("max.message.bytes", "-1"),
    ("segment.ms", "0"),
    ("min.compaction.lag.ms", "999999999999999"),
    ("message.timestamp.type", "createtime"),
    ("segment.index.bytes", "1"),
    ("retention.ms", " 100000 "),
    ("unclean.leader.election.enable", "TRUE"),
    ("max.message.bytes", "1e3"),
    ("remote.storage.enable", "false"),
)
NAMES = ("", ".", "..", "a/b", "x" * 250, "$t:0", "__consumer_offsets", "a b", "ü", "$t:0")
TOPIC, BROKER = 2, 4
BROKER_CONFIGS = (
    ("message.max.bytes", "1000"),
    ("message.max.bytes", "-1"),
    ("log.retention.ms", "x"),
    ("log.cleaner.min.cleanable.ratio", "0.3"),
    ("log.cleaner.min.cleanable.ratio", "2"),
    ("log.cleanup.policy", "compact"),
    ("compression.type", "zip"),
    ("unclean.leader.election.enable", "true"),
    ("broker.id", "7"),
    ("log.dir", "/nowhere"),
    ("num.partitions", "3"),
    ("auto.create.topics.enable", "true"),
    ("offsets.retention.minutes", "1"),
    ("nonsense", "1"),
)
"""For checks alone: what is in force of the only broker is in force for all scripts."""


def config(draw: Draw) -> dict[str, Any]:
    """A name and a value."""
    name, value = draw.one(*BAD_CONFIGS) if draw.bad(0.15) else draw.one(*CONFIGS)
    return {"name": name, "value": value}


def configs(draw: Draw) -> list[dict[str, Any]]:
    """Some names and values, seldom a name twice."""
    drawn = [config(draw) for _ in range(draw.rng.randint(0, 3))]
    return drawn if draw.bad(0.1) else list({each["name"]: each for each in drawn}.values())


def create_topics(draw: Draw) -> Step:
    """Create topics, some of which cannot be."""
    topics = []
    for _ in range(draw.usually(1, 2)):
        assigned = draw.bad(0.2)
        assignments = [
            {"partition_index": index, "broker_ids": draw.usually([0], [0, 0], [5], share=0.95)}
            for index in range(draw.rng.randint(1, 2))
        ]
        if assigned and draw.bad(0.15):
            assignments[0]["partition_index"] = draw.one(-1, 1, 5)
        topics.append(
            {
                "name": draw.one(*NAMES) if draw.bad(0.15) else draw.new_topic(),
                "num_partitions": draw.usually(-1, 1, share=0.9) if assigned else draw.usually(1, 2, -1, 0, -2),
                "replication_factor": draw.usually(-1, 1, share=0.9) if assigned else draw.usually(1, -1, 0, 2, -3),
                "assignments": assignments if assigned else [],
                "configs": configs(draw),
            }
        )
    validate = draw.bad(0.15)
    return draw.step("CreateTopics", topics=topics, timeout_ms=draw.usually(5000, 2000), validate_only=validate)


def delete_topics(draw: Draw) -> Step:
    """Delete topics."""
    names = [draw.topic() for _ in range(draw.usually(1, 2, 0))]
    return draw.step("DeleteTopics", topic_names=list(dict.fromkeys(names)), timeout_ms=5000)


def create_partitions(draw: Draw) -> Step:
    """Give topics more partitions."""
    count = draw.usually(3, 0, 1, 2, 4, -1, share=0.4)
    assigned = [{"broker_ids": draw.usually([0], [5], [], [0, 0])} for _ in range(draw.rng.randint(0, 2))]
    topic = {"name": draw.topic(), "count": count, "assignments": assigned if draw.bad(0.3) else None}
    twice = [topic, topic] if draw.bad(0.04) else [topic]
    return draw.step("CreatePartitions", topics=twice, timeout_ms=5000, validate_only=draw.bad(0.2))


def metadata(draw: Draw) -> Step:
    """Describe topics."""
    return draw.step(
        "Metadata",
        topics=[{"name": draw.topic()} for _ in range(draw.usually(1, 2, share=0.7))],
        allow_auto_topic_creation=draw.one(False, True),
        include_cluster_authorized_operations=draw.bad(0.3),
        include_topic_authorized_operations=draw.bad(0.3),
    )


def describe_log_dirs(draw: Draw) -> Step:
    """Describe where replicas are, without the topics of other scripts."""
    topics = [{"topic": draw.topic(), "partitions": draw.partitions()}]
    return draw.step("DescribeLogDirs", topics=topics)


def describe_cluster(draw: Draw) -> Step:
    """Describe the cluster."""
    return draw.step("DescribeCluster", include_cluster_authorized_operations=draw.one(False, True))


def alter_log_dirs(draw: Draw) -> Step:
    """Move replicas to a directory that the broker does not have."""
    topics = [{"name": draw.usually(draw.topic(), "x" * 245, share=0.85), "partitions": draw.partitions()}]
    return draw.step("AlterReplicaLogDirs", dirs=[{"path": "/nowhere", "topics": topics}])


def elect(draw: Draw) -> Step:
    """Ask for elections that no partition needs."""
    topics = [{"topic": draw.topic(), "partitions": draw.partitions()}]
    return draw.step(
        "ElectLeaders", election_type=draw.usually(0, 1, share=0.7), topic_partitions=topics, timeout_ms=1000
    )


def reassign(draw: Draw) -> Step:
    """Reassign to the only broker, to an unknown one, or cancel."""
    partitions = [
        {"partition_index": draw.partition(), "replicas": draw.usually([0], None, [], [5], [0, 0], share=0.3)}
    ]
    topics = [{"name": draw.topic(), "partitions": partitions}]
    return draw.step("AlterPartitionReassignments", timeout_ms=1000, topics=topics)


def list_reassignments(draw: Draw) -> Step:
    """List reassignments."""
    topics = [{"name": draw.topic(), "partition_indexes": draw.partitions()}]
    return draw.step("ListPartitionReassignments", timeout_ms=1000, topics=draw.usually(topics, None))


def _resource(draw: Draw) -> dict[str, Any]:
    if draw.bad(0.05):
        return {"resource_type": draw.one(0, 1, 8, 16, 99), "resource_name": draw.topic()}
    return {"resource_type": TOPIC, "resource_name": draw.topic()}


def describe_configs(draw: Draw) -> Step:
    """Describe the configuration of topics, and single properties of the broker."""
    names = [each["name"] for each in configs(draw)]
    resource = _resource(draw) | {"configuration_keys": draw.usually(None, names, share=0.5)}
    if draw.bad(0.15):
        keys = draw.some(["log.retention.ms", "message.max.bytes", "log.roll.hours", "compression.type", "nonsense"])
        resource = {
            "resource_type": BROKER,
            "resource_name": draw.usually("0", "", "5", "x"),
            "configuration_keys": keys,
        }
    return draw.step(
        "DescribeConfigs",
        resources=[resource],
        include_synonyms=draw.one(False, True),
        include_documentation=draw.bad(0.2),
    )


def alter_configs(draw: Draw) -> Step:
    """Replace the configuration of topics."""
    if draw.bad(0.1):
        names = [{"name": name, "value": value} for name, value in dict(draw.some(BROKER_CONFIGS, 2)).items()]
        resource = {"resource_type": BROKER, "resource_name": draw.one("0", "", "5", "x"), "configs": names}
        return draw.step("AlterConfigs", resources=[resource], validate_only=True)
    resource = _resource(draw) | {"configs": configs(draw)}
    return draw.step("AlterConfigs", resources=[resource], validate_only=draw.bad(0.2))


def incremental_alter(draw: Draw) -> Step:
    """Change single settings: set, delete, append, subtract."""
    changes: list[dict[str, Any]] = []
    for each in configs(draw):
        if draw.bad(0.3):
            each = {"name": "cleanup.policy", "value": draw.one("compact", "delete", "compact,delete")}
        operation = draw.usually(0, 1, 2, 3, 4, share=0.5)
        changes.append(each | {"config_operation": operation, "value": None if operation == 1 else each["value"]})
    resource = _resource(draw) | {"configs": changes}
    if draw.bad(0.1):
        changed = [
            {"name": name, "value": value, "config_operation": draw.usually(0, 1, 2, 3)}
            for name, value in dict(draw.some(BROKER_CONFIGS, 2)).items()
        ]
        resource = {"resource_type": BROKER, "resource_name": draw.one("0", "0", "", "5", "x"), "configs": changed}
        return draw.step("IncrementalAlterConfigs", resources=[resource], validate_only=True)
    return draw.step("IncrementalAlterConfigs", resources=[resource], validate_only=draw.bad(0.2))
