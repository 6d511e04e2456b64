"""All kinds of subjects, and all rules."""

from harness.model import (
    checkpoints,
    controller,
    coordinator,
    deletion,
    group,
    holdings,
    leader,
    leaders_sent,
    live_sent,
    machines,
    producer,
    replica,
    transaction,
    znodes,
)
from harness.model.step import Rule, Subject
from harness.model.walk import Walker, ZnodeWalker

OF_BROKERS: tuple[Subject, ...] = (
    replica.SUBJECT,
    leader.SUBJECT,
    controller.SUBJECT,
    live_sent.SUBJECT,
    leaders_sent.SUBJECT,
    machines.PARTITION,
    machines.REPLICA,
    producer.SUBJECT,
    deletion.SUBJECT,
    group.SUBJECT,
    transaction.SUBJECT,
    coordinator.SUBJECT,
    holdings.SUBJECT,
    checkpoints.SUBJECT,
)
"""What takes its steps in the state-change logs."""
OF_ZOOKEEPER: Subject = znodes.SUBJECT
RULES: tuple[Rule, ...] = tuple(rule for subject in (*OF_BROKERS, OF_ZOOKEEPER) for rule in subject.rules)


def broker_walker() -> Walker:
    """Return what walks the logs of the brokers of one run."""
    return Walker(OF_BROKERS)


def znode_walker() -> ZnodeWalker:
    """Return what walks ZooKeeper's history of one run."""
    return ZnodeWalker(OF_ZOOKEEPER, znodes.events_of)
