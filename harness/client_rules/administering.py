"""What an administrator asks for under load: topics of its own, configurations, groups of its own, and descriptions.

Topics of the load keep their records and their replicas: only properties that lose nothing change for them. With
`transacts` it also writes to its own topics, and commits offsets of its groups, within transactions that last while it
asks for other things.
"""

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from harness.broker.wire.error_codes import ErrorCode
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import TopicPartition

OWN_TOPICS = 3
"""How many topics of its own an administrator has at most."""
TRIED_SHARE = 0.1
"""How often a change is only checked by the cluster (`validate_only`)."""
RETENTIONS_MS = (1, 500, 2000, 5000)
"""How long an offset of its groups is kept."""
SEPARATORS = "-._"
"""What the words of a topic's name are joined by."""
COLLIDING_SHARE = 0.15
"""How often a new topic's name differs by '.' and '_' alone from that of another one, which Kafka refuses."""
APPENDED_SHARE = 0.2
"""How often a change of configuration appends to a list."""
TIMEOUTS_MS = (1, 100)
"""Time-outs in requests that are shorter than the controller may need."""
SHORT_SHARE = 0.2
"""The share of requests with such a time-out."""
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Their replicas move between directories as others do."""


class Action(StrEnum):
    """What it asks for; the `mode` of the operation."""

    CREATE_TOPIC = "create-topic"
    ADD_PARTITIONS = "add-partitions"
    DELETE_TOPIC = "delete-topic"
    CONFIGURE_TOPIC = "configure-topic"
    CONFIGURE_BROKER = "configure-broker"
    CONFIGURE_BROKERS = "configure-brokers"
    REPLACE_CONFIG = "replace-config"
    """Sets some properties of one of its topics and resets all others (AlterConfigs)."""
    DESCRIBE_TOPIC = "describe-topic"
    DESCRIBE_BROKER = "describe-broker"
    DESCRIBE_LOG_DIRS = "describe-log-dirs"
    DESCRIBE_CLUSTER = "describe-cluster"
    MOVE_REPLICA = "move-replica"
    """Moves a replica into another data directory of its broker."""
    ELECT_LEADERS = "elect-leaders"
    REASSIGN = "reassign"
    CANCEL_REASSIGNMENT = "cancel-reassignment"
    LIST_REASSIGNMENTS = "list-reassignments"
    COMMIT_OFFSET = "commit-offset"
    DELETE_OFFSET = "delete-offset"
    DELETE_GROUP = "delete-group"
    FETCH_OFFSETS = "fetch-offsets"
    LIST_GROUPS = "list-groups"
    DESCRIBE_GROUPS = "describe-groups"
    LIST_TRANSACTIONS = "list-transactions"
    DESCRIBE_TRANSACTIONS = "describe-transactions"
    INIT_PRODUCER = "init-producer"
    """Asks any broker for a producer id, without a transactional id."""
    WRITE = "write"
    """Writes a record within the open transaction, or a new one."""
    SEND_OFFSETS = "send-offsets"
    """Commits an offset within the open transaction, or a new one."""
    END_TRANSACTION = "end-transaction"


WEIGHTS: Mapping[Action, int] = {
    Action.CREATE_TOPIC: 5,
    Action.ADD_PARTITIONS: 2,
    Action.DELETE_TOPIC: 3,
    Action.CONFIGURE_TOPIC: 3,
    Action.CONFIGURE_BROKER: 2,
    Action.CONFIGURE_BROKERS: 1,
    Action.REPLACE_CONFIG: 1,
    Action.DESCRIBE_TOPIC: 1,
    Action.DESCRIBE_BROKER: 1,
    Action.DESCRIBE_LOG_DIRS: 1,
    Action.DESCRIBE_CLUSTER: 1,
    Action.MOVE_REPLICA: 6,
    Action.ELECT_LEADERS: 2,
    Action.REASSIGN: 3,
    Action.CANCEL_REASSIGNMENT: 1,
    Action.LIST_REASSIGNMENTS: 1,
    Action.COMMIT_OFFSET: 6,
    Action.DELETE_OFFSET: 2,
    Action.DELETE_GROUP: 1,
    Action.FETCH_OFFSETS: 3,
    Action.LIST_GROUPS: 2,
    Action.DESCRIBE_GROUPS: 2,
    Action.LIST_TRANSACTIONS: 3,
    Action.DESCRIBE_TRANSACTIONS: 1,
    Action.INIT_PRODUCER: 2,
    Action.WRITE: 6,
    Action.SEND_OFFSETS: 4,
    Action.END_TRANSACTION: 3,
}
"""How often each is asked for, in proportion."""
OF_TOPICS: Mapping[str, tuple[str | None, ...]] = {
    "segment.ms": (None, "1000", "5000"),
    "flush.messages": (None, "1", "20"),
    "flush.ms": (None, "1000"),
    "index.interval.bytes": (None, "0", "500"),
    "min.cleanable.dirty.ratio": (None, "0", "0.3"),
    "min.compaction.lag.ms": (None, "0", "1000", "4000"),
    "compression.type": (None, "gzip", "lz4", "producer"),
}
"""What may change for any topic without a loss, and to what; None for what its brokers have."""
OF_BROKERS: Mapping[str, tuple[str | None, ...]] = {
    "log.roll.ms": (None, "2000", "8000"),
    "log.flush.interval.messages": (None, "1", "20"),
    "log.index.interval.bytes": (None, "0", "500"),
    "log.cleaner.min.cleanable.ratio": (None, "0", "0.3"),
    "unclean.leader.election.enable": (None, "false"),
}
LIST_OF_TOPICS, LIST_OF_BROKERS = "cleanup.policy", "log.cleanup.policy"
"""Lists that a policy may be appended to. Of brokers that is only checked: it would take records of the load."""
OF_OWN_TOPICS = frozenset(
    {
        Action.ADD_PARTITIONS,
        Action.DELETE_TOPIC,
        Action.REPLACE_CONFIG,
        Action.REASSIGN,
        Action.CANCEL_REASSIGNMENT,
        Action.WRITE,
    }
)
"""What it asks for of no other topic than its own."""
AT_ONCE = (Action.REASSIGN, Action.CANCEL_REASSIGNMENT, Action.ADD_PARTITIONS, Action.WRITE, Action.DELETE_TOPIC)
"""What may follow a reassignment at once, of the same topic, while replicas are made and removed."""
AT_ONCE_SHARE = 0.4
"""The share of reassignments that one of these follows."""
IN_TRANSACTIONS = frozenset({Action.WRITE, Action.SEND_OFFSETS, Action.END_TRANSACTION})
"""Asked for only with `transacts`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request of an administrator."""

    invoked: Operation
    action: Action
    topic: str = ""
    """Empty with `elect-leaders`: of all partitions."""
    partition: int = -1
    partitions: int = 0
    """How many the topic is to have."""
    replicas: int = 0
    """How many each of them is to have; of a reassignment, how many brokers further the replicas move."""
    offset: int = 0
    retention_ms: int = -1
    group: str = ""
    config: Mapping[str, str | None] = field(default_factory=dict)
    appends: bool = False
    """Whether the configuration is appended to lists."""
    tried: bool = False
    """Whether the cluster only checks it."""
    lucky: float = 0.0
    """From 0 to 1: which broker is asked, where any may be."""
    timeout_ms: int | None = None
    """The time-out in the request; None for the one of the client."""


class Administering:
    """The requests of one process."""

    def __init__(self, plan: ClientPlan, recorder: Recorder, actions: Collection[Action] = frozenset(Action)) -> None:
        """`actions`: those that the client can carry out."""
        self._interval_s: float = plan.parameters["interval_s"]
        self._at_once = ""
        """The topic that the next request names, which is sent without a pause; empty for any topic."""
        self._group = plan.process
        self._transactions = 0
        self._configurable: list[str] = plan.parameters["configures"]
        self._created_topics = 0
        self._named: set[str] = set()
        """Names that were used: no topic is created twice under one name."""
        self._topics = plan.topics
        self.own: dict[str, int] = {}
        """Partitions of each of its topics that there seem to be."""
        left_out = frozenset() if plan.parameters["transacts"] else IN_TRANSACTIONS
        self._actions = [action for action in Action if action in actions and action not in left_out]
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._recorder = recorder

    @property
    def pause_s(self) -> float:
        """How long to wait before the next request."""
        return 0.0 if self._at_once else self._interval_s

    def next(self) -> Request:
        """Return the next request, which is written down."""
        followed, self._at_once = self._at_once, ""
        if followed in self.own:
            action, own = self._rng.choice([each for each in AT_ONCE if each in self._actions]), [followed]
        else:
            action, own = self._action(), list(self.own)
        if action is Action.REASSIGN and self._rng.random() < AT_ONCE_SHARE:
            self._at_once = self._rng.choice(own)
            own = [self._at_once]
        match action:
            case Action.CREATE_TOPIC:
                return self._created()
            case Action.ADD_PARTITIONS:
                topic = self._rng.choice(own)
                return self._request(action, topic=topic, partitions=self.own[topic] + 1, tried=self._tries())
            case Action.REASSIGN:
                topic = self._rng.choice(own)
                partition = self._rng.randrange(self.own[topic])
                return self._request(action, topic=topic, partition=partition, replicas=self._rng.randint(1, 3))
            case Action.WRITE:
                topic = self._rng.choice(own)
                return self._request(action, topic=topic, partition=self._rng.randrange(self.own[topic]))
            case Action.DELETE_TOPIC | Action.CANCEL_REASSIGNMENT:
                topic = self._rng.choice(own)
                partition = -1 if action is Action.DELETE_TOPIC else self._rng.randrange(self.own[topic])
                return self._request(action, topic=topic, partition=partition)
            case Action.CONFIGURE_TOPIC:
                topic = self._rng.choice([*own, *self._configurable])
                if topic in own and self._rng.random() < APPENDED_SHARE:
                    return self._appended(action, topic, LIST_OF_TOPICS, tried=self._tries())
                return self._request(action, topic=topic, config=self._config(OF_TOPICS), tried=self._tries())
            case Action.REPLACE_CONFIG:
                config = {name: value for name, value in self._config(OF_TOPICS).items() if value is not None}
                return self._request(action, topic=self._rng.choice(own), config=config)
            case Action.CONFIGURE_BROKER | Action.CONFIGURE_BROKERS:
                if self._rng.random() < APPENDED_SHARE:
                    return self._appended(action, "", LIST_OF_BROKERS, tried=True)
                return self._request(action, config=self._config(OF_BROKERS), tried=self._tries())
            case Action.ELECT_LEADERS:
                topic = self._rng.choice(["", *self.own])
                partition = self._rng.randrange(self.own[topic]) if topic else -1
                return self._request(action, topic=topic, partition=partition)
            case Action.MOVE_REPLICA:
                topic, partition = self._rng.choice([self._partition(), (self._rng.choice(INTERNAL_TOPICS), 0)])
                return self._request(action, topic=topic, partition=partition)
            case Action.COMMIT_OFFSET | Action.DELETE_OFFSET | Action.FETCH_OFFSETS | Action.SEND_OFFSETS:
                return self._of_group(action, *self._partition())
            case _:
                topic, group = self._rng.choice([*own, *self._topics]), self._some_group()
                return self._request(action, topic=topic, group=group)

    def _action(self) -> Action:
        """Return the next action; what needs a topic of its own waits until there is one."""
        (action,) = self._rng.choices(self._actions, [WEIGHTS[each] for each in self._actions])
        if action is Action.CREATE_TOPIC and len(self.own) == OWN_TOPICS:
            return Action.DELETE_TOPIC
        if not self.own and (action in OF_OWN_TOPICS or (action is Action.CONFIGURE_TOPIC and not self._configurable)):
            return Action.CREATE_TOPIC
        return action

    def _created(self) -> Request:
        """Return the creation of a topic, each of another name: evidence tells partitions apart by names alone."""
        topic = self._name()
        partitions, replicas = self._rng.randint(1, 2), self._rng.randint(1, 3)
        config = {name: value for name, value in self._config(OF_TOPICS).items() if value is not None}
        return self._request(
            Action.CREATE_TOPIC,
            topic=topic,
            partitions=partitions,
            replicas=replicas,
            config=config,
            tried=self._tries(),
        )

    def _name(self) -> str:
        colliding = [other for each in self.own if (other := _colliding(each)) not in self._named]
        if colliding and self._rng.random() < COLLIDING_SHARE:
            name = colliding[0]
        else:
            self._created_topics += 1
            name = self._rng.choice(SEPARATORS).join((self._group, "topic", str(self._created_topics)))
        self._named.add(name)
        return name

    def _appended(self, action: Action, topic: str, name: str, *, tried: bool) -> Request:
        return self._request(action, topic=topic, config={name: "compact"}, appends=True, tried=tried)

    def _of_group(self, action: Action, topic: str, partition: int) -> Request:
        return self._request(
            action,
            topic=topic,
            partition=partition,
            group=self._some_group(),
            offset=self._rng.randint(0, 1000),
            retention_ms=self._rng.choice(RETENTIONS_MS),
        )

    def _some_group(self) -> str:
        """Return its group, a second one, or one that changes with each transaction that has ended."""
        return self._rng.choice((self._group, f"{self._group}-second", f"{self._group}-{self._transactions}"))

    def _partition(self) -> TopicPartition:
        known = {**self._topics, **self.own}
        topic = self._rng.choice(list(known))
        return topic, self._rng.randrange(known[topic])

    def _config(self, choices: Mapping[str, tuple[str | None, ...]]) -> dict[str, str | None]:
        names = self._rng.sample(sorted(choices), self._rng.randint(1, 2))
        return {name: self._rng.choice(choices[name]) for name in names}

    def _tries(self) -> bool:
        return self._rng.random() < TRIED_SHARE

    def _request(
        self,
        action: Action,
        *,
        topic: str = "",
        partition: int = -1,
        partitions: int = 0,
        replicas: int = 0,
        offset: int = 0,
        retention_ms: int = -1,
        group: str = "",
        config: Mapping[str, str | None] | None = None,
        appends: bool = False,
        tried: bool = False,
    ) -> Request:
        invoked = self._recorder.invoke(
            OpKind.ADMINISTER, topic=topic, partition=partition, group=group, mode=action.value
        )
        return Request(
            invoked=invoked,
            action=action,
            topic=topic,
            partition=partition,
            partitions=partitions,
            replicas=replicas,
            offset=offset,
            retention_ms=retention_ms,
            group=group,
            config=config or {},
            appends=appends,
            tried=tried,
            lucky=self._rng.random(),
            timeout_ms=self._rng.choice(TIMEOUTS_MS) if self._rng.random() < SHORT_SHARE else None,
        )

    # --- answers ---

    def done(self, request: Request) -> None:
        """Take note of a request that was carried out."""
        self._recorder.end(request.invoked, OpType.OK)
        if request.tried:
            return
        if request.action in (Action.CREATE_TOPIC, Action.ADD_PARTITIONS):
            self.own[request.topic] = request.partitions
        elif request.action is Action.DELETE_TOPIC:
            self.own.pop(request.topic, None)
        elif request.action is Action.END_TRANSACTION:
            self._transactions += 1

    def refused(self, request: Request, error: str, code: int) -> None:
        """Take note of a request that a broker refuses with one of Kafka's error codes, as `error` describes it."""
        self._recorder.end(request.invoked, OpType.FAIL, error=error)
        if code == ErrorCode.TOPIC_ALREADY_EXISTS and request.action is Action.CREATE_TOPIC:
            self.own[request.topic] = 1
        elif code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self.own.pop(request.topic, None)
        elif code == ErrorCode.INVALID_PARTITIONS and request.action is Action.ADD_PARTITIONS:  # after one unanswered
            self.own[request.topic] = request.partitions

    def unanswered(self, request: Request, error: str) -> None:
        """Take note that it is unknown what became of a request; a topic that was to be created may be there."""
        self._recorder.end(request.invoked, OpType.INFO, error=error)
        if request.action is Action.CREATE_TOPIC and not request.tried:
            self.own.setdefault(request.topic, request.partitions)


def _colliding(name: str) -> str:
    """Return the name with '.' for '_' and the other way round."""
    return name.translate(str.maketrans("._", "_."))
