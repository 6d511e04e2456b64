"""What may a scenario declare? The typed model of a scenario file.

`harness.scenario.file` reads a file into it; `harness.scenario.rules` refuses what the model alone cannot, such as more
replicas than brokers.
"""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, PlainValidator
from pydantic_core import PydanticCustomError

from harness.cluster.driver import quorum_ids
from harness.cluster.external.commands import problem_of
from harness.contracts.objectives import Objectives
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target, parse_target
from harness.kafka.security.settings import problem_of as problem_of_settings
from harness.scenario.conditions import ALLOWED
from harness.values import PYTHON

SPARED = 10
"""There is a spare for so many faults of a mix, and one at least."""
INTERCEPTION = "intercept"
"""The kind of fault by which steps intercept messages."""
POSTPONED_S = 120.0
"""A fault waits so long for its target to be free, and a drawn one for its role to be had, and is refused then. To heal
what is in the way takes no longer."""


def _property_text(value: Any) -> Any:
    """Return a YAML number or boolean as the text of a properties file; other values stay, for pydantic to refuse."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _ids_text(value: Any) -> Any:
    """Return broker ids that are given as a number or a list as the text of a target."""
    ids = value if isinstance(value, list) else [value]
    return ",".join(map(str, ids)) if ids and all(type(item) is int for item in ids) else value


def _ids(value: Any) -> Any:
    """Return a list in which broker ids that are given as numbers are texts."""
    return [str(item) if type(item) is int else item for item in value] if isinstance(value, list) else value


def _by_id(value: Any) -> Any:
    """Return what is given by ids, which YAML's keys are as texts, by numbers."""
    if not isinstance(value, dict):
        return value
    return {int(key) if isinstance(key, str) and key.isdecimal() else key: each for key, each in value.items()}


def _template(value: str) -> str:
    if problem := problem_of(value):
        raise ValueError(problem)
    return value


def _without_secrets(value: dict[str, str]) -> dict[str, str]:
    if problem := problem_of_settings(value):
        raise ValueError(problem)
    return value


Properties = dict[str, Annotated[str, BeforeValidator(_property_text)]]
"""Kafka's property names with text values; in YAML a value may also be a number or a boolean."""


class TopicSpec(Strict):
    """A topic that the run creates before the workload starts."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$", description="Topic name")]
    partitions: Annotated[int, Field(ge=1, le=1000, description="Number of partitions")] = 3
    replication_factor: Annotated[int, Field(ge=1, le=32, description="Replicas a partition")] = 3
    config: Annotated[Properties, Field(description="Kafka topic configuration")] = Field(default_factory=dict)
    replicas: Annotated[
        list[str],
        BeforeValidator(_ids),
        Field(description="Roles or broker ids that hold every partition, the preferred leader first"),
    ] = Field(default_factory=list)


Command = Annotated[str, AfterValidator(_template)]
HostName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,252}$")]
Address = Annotated[str, Field(pattern=r"^[^\s,:]+:\d+$")]
Addresses = Annotated[str, Field(pattern=r"^[^\s,:]+:\d+(,[^\s,:]+:\d+)*$")]


class ExternalBroker(Strict):
    """One broker of an existing cluster."""

    id: Annotated[int, Field(ge=0, description="Its broker id")]
    host: Annotated[HostName, Field(description="{host} in commands")]
    name: Annotated[HostName, Field(description="{name} in commands; else the host")] | None = None


class ExternalCommands(Strict):
    """Its owner's commands, without a shell; {host}, {name} and {id} are the broker's, {into} is a folder here."""

    check: Annotated[
        Command | None, Field(description="Changes nothing, and fails where the other commands would: ssh {host} true")
    ] = None
    kill: Annotated[Command | None, Field(description="Kills a broker at once and keeps it down")] = None
    stop: Annotated[Command | None, Field(description="Stops a broker cleanly")] = None
    start: Annotated[Command | None, Field(description="Starts a stopped broker")] = None
    pause: Annotated[Command | None, Field(description="Pauses a broker")] = None
    resume: Annotated[Command | None, Field(description="Resumes a paused broker")] = None
    bounce: Annotated[
        Command | None, Field(description="Ends a broker at once; its manager, such as systemd, starts it again")
    ] = None
    data: Annotated[
        Command | None,
        Field(description="Copies a broker's data directory into {into}; topics of the run begin with {prefix}"),
    ] = None
    logs: Annotated[
        Command | None, Field(description="Copies the logs of a broker, of the stated release, into {into}")
    ] = None
    zookeeper: Annotated[Command | None, Field(description="Copies a ZooKeeper server's data into {into}")] = None


class ExternalFault(Strict):
    """A fault of your own, as three commands; the placeholders are those of the others."""

    inject: Annotated[Command, Field(description="Injects it on one broker")]
    confirm: Annotated[Command, Field(description="Fails as long as the effect is not there")]
    heal: Annotated[Command, Field(description="Ends it; must succeed when it has already ended")]


class Forwarded(Strict):
    """How clients of the run reach one broker through the relay."""

    listen: Annotated[Address, Field(description="host:port that the relay opens and the broker advertises")]
    target: Annotated[Address, Field(description="host:port of the broker's own listener")]


class ExternalRelay(Strict):
    """The harness's relay in front of the brokers, while a run goes on."""

    clients: Annotated[
        dict[int, Forwarded], BeforeValidator(_by_id), Field(min_length=1, description="Of each broker, by its id")
    ]
    listens_on: Annotated[
        str,
        Field(
            pattern=r"^[^\s,:]*$",
            description="Address at which the relay listens, such as 0.0.0.0, where the advertised hosts are not those"
            " of this machine",
        ),
    ] = ""


FaultName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]


class ExternalSpec(Strict):
    """An existing cluster."""

    id: Annotated[str, Field(min_length=1, description="Cluster id; a cluster with another id is not touched")]
    bootstrap_servers: Annotated[Addresses, Field(description="host:port of brokers")]
    zookeeper: Annotated[Addresses | None, Field(description="host:port of its ZooKeeper servers")] = None
    controllers: Annotated[
        dict[int, Address],
        BeforeValidator(_by_id),
        Field(description="Without ZooKeeper, host:port of each controller of its quorum, by id"),
    ] = Field(default_factory=dict)
    client: Annotated[
        Properties,
        AfterValidator(_without_secrets),
        Field(
            description="Kafka's client settings (security.protocol, sasl.*, ssl.*, zookeeper.*), with ${env:NAME} or"
            " ${file:PATH:KEY} in place of secrets; `file` names a properties file"
        ),
    ] = Field(default_factory=dict)
    release: Annotated[
        str, Field(pattern=r"^(\d+(\.\d+)+)?$", description="Release of Apache Kafka, whose log format is expected")
    ] = ""
    brokers: Annotated[
        list[ExternalBroker], Field(min_length=1, max_length=32, description="All brokers of the cluster")
    ]
    commands: Annotated[ExternalCommands, Field(description="Commands that you supply")] = ExternalCommands()
    faults: Annotated[
        dict[FaultName, ExternalFault], Field(description="Faults of your own by name, for the kind custom")
    ] = Field(default_factory=dict)
    relay: Annotated[
        ExternalRelay | None,
        Field(description="Addresses of the harness's relay that brokers advertise, for faults on links to clients"),
    ] = None
    timeout_s: Annotated[float, Field(gt=0, le=600, description="For each command")] = 60.0
    expire_sessions: Annotated[
        bool, Field(description="Allow the harness to end ZooKeeper sessions and to move the controller")
    ] = False
    prefix: Annotated[
        str,
        Field(
            pattern=r"^(chaos-[0-9a-f]{10}-)?$", description="Prefix of the run's topics and groups; drawn for each run"
        ),
    ] = ""


class ClusterFile(ExternalSpec):
    """An existing cluster in a file of its own, which scenarios name."""

    properties: Annotated[
        Properties, Field(description="Broker properties as the cluster is configured, where not Kafka's defaults")
    ] = Field(default_factory=dict)


class ClusterSpec(Strict):
    """The cluster under test."""

    brokers: Annotated[int, Field(ge=1, le=32, description="Number of brokers")] = 3
    zookeeper_servers: Annotated[Literal[1, 3], Field(description="One ZooKeeper server, or an ensemble of three")] = 1
    controllers: Annotated[
        Literal[1, 3] | None,
        Field(description="Without ZooKeeper, number of controllers: 3, or 1 with fewer than 3 brokers"),
    ] = None
    separate_controllers: Annotated[
        bool, Field(description="Without ZooKeeper, run controllers as separate servers; one unless controllers is 3")
    ] = False
    properties: Annotated[Properties, Field(description="Kafka broker properties, which override the harness's")] = (
        Field(default_factory=dict)
    )

    external: Annotated[
        ExternalSpec | None, Field(description="An existing cluster, as a cluster file describes it")
    ] = None

    @property
    def broker_ids(self) -> Sequence[int]:
        """The ids that every driver gives to its brokers, or those of the external cluster."""
        return range(self.brokers) if self.external is None else sorted(broker.id for broker in self.external.brokers)

    @property
    def quorum_ids(self) -> Sequence[int]:
        """The ids that every driver gives to controllers, where there is no ZooKeeper."""
        return quorum_ids(self.brokers, self.controllers, separate=self.separate_controllers)


class WorkloadSpec(Strict):
    """One kind of client load."""

    kind: Annotated[str, Field(description="A kind of load")]
    parameters: Annotated[dict[str, Any], Field(description="Parameters of this kind")] = Field(default_factory=dict)


TARGETS = (
    "leader(topic,partition), followers(topic,partition), coordinator(group),"
    " transaction-coordinator(id), member(group,number), controller, one,"
    " minority, majority, all, broker ids: 1,2, zookeeper, or zookeeper(2, leader, follower, majority or all)"
)


OnlyWithZookeeper = Annotated[bool, Field(description="Skip this fault where the system has no ZooKeeper")]


def _target(value: Any) -> Target:
    if isinstance(value, Target):
        return value
    text = _ids_text(value)
    if not isinstance(text, str):
        raise ValueError("must be a text or broker ids")
    try:
        return parse_target(text)
    except ValueError as error:
        raise PydanticCustomError("target", "{problem}", {"problem": str(error)}) from error


TargetText = Annotated[
    Target,
    PlainValidator(_target, json_schema_input_type=str),
    PlainSerializer(lambda target: target.text or str(target), return_type=str),
    Field(description=TARGETS, json_schema_extra={"default": "one"}),
]
"""A target, which files have as text."""
ONE = parse_target("one")


class FaultSpec(Strict):
    """One fault of the schedule."""

    kind: Annotated[str, Field(description="Kind of fault")]
    at_s: Annotated[float, Field(ge=0, description="Seconds after the workload is in steady state")]
    jitter_s: Annotated[float, Field(ge=0, description="Seconds that the seed may add to at_s")] = 0.0
    duration_s: Annotated[float, Field(ge=0, description="Seconds until it is healed")] = 0.0
    target: TargetText = ONE
    parameters: Annotated[dict[str, Any], Field(description="Parameters of this kind")] = Field(default_factory=dict)
    after: Annotated[
        str, Field(description="From at_s on it waits for a broker to log this moment, within_s at most")
    ] = ""
    offset_s: Annotated[float, Field(ge=0, le=60, description="Seconds after that moment")] = 0.0
    within_s: Annotated[
        float, Field(gt=0, le=600, description="Longest wait for the moment; it happens then without it")
    ] = 10.0
    only_with_zookeeper: OnlyWithZookeeper = False

    @property
    def latest_end_s(self) -> float:
        """Seconds after the steady state at which it is healed at the latest, if healing takes no time."""
        wait_s = self.within_s + self.offset_s if self.after else 0.0
        return self.at_s + self.jitter_s + wait_s + self.duration_s


Seconds = Annotated[float, Field(ge=0)]


class MixKind(Strict):
    """One kind of fault that a mix may draw."""

    kind: Annotated[str, Field(description="Kind of fault")]
    weight: Annotated[float, Field(gt=0, le=1000, description="Relative frequency")] = 1.0
    duration_s: Annotated[
        list[Seconds],
        BeforeValidator(
            lambda value: value if isinstance(value, list) else [value, value],
            json_schema_input_type=Seconds | Annotated[list[Seconds], Field(min_length=2, max_length=2)],
        ),
        Field(min_length=2, max_length=2, description="Seconds until it is healed, or their range: [2, 6]"),
    ] = Field(default_factory=lambda: [0.0, 0.0], validate_default=True)
    target: TargetText = ONE
    alone: Annotated[bool, Field(description="No other fault is in force meanwhile")] = False
    parameters: Annotated[dict[str, Any], Field(description="Parameters of this kind")] = Field(default_factory=dict)
    only_with_zookeeper: OnlyWithZookeeper = False


class MixSpec(Strict):
    """Faults whose kinds, targets, instants and durations are drawn from the seed."""

    kinds: Annotated[list[MixKind], Field(min_length=1, description="What may be drawn")]
    count: Annotated[int | None, Field(ge=1, le=1000, description="How many faults; leave out if every_s is given")] = (
        None
    )
    every_s: Annotated[
        float | None, Field(gt=0, description="One fault in this many seconds of load, instead of count")
    ] = None
    at_once: Annotated[int, Field(ge=1, le=32, description="How many may be in force at the same time")] = 1
    moments: Annotated[
        float, Field(ge=0, le=1, description="Share of those drawn that wait for a state change that a broker logs")
    ] = 0.0
    motifs: Annotated[
        list[str], Field(description="Names of motifs, several faults that are drawn whole; all means any")
    ] = Field(default_factory=list)
    motif_count: Annotated[int, Field(ge=1, le=100, description="How many motifs are drawn, beside count")] = 1
    settle_s: Annotated[
        float,
        Field(ge=0, le=600, description="Seconds after its duration in which each fault is observed and healed"),
    ] = 6.0

    def injections(self, duration_s: float) -> int:
        """Return how many faults are drawn for a load of `duration_s` seconds."""
        return self.count if self.count is not None else max(1, int(duration_s / (self.every_s or duration_s)))

    def spares(self, duration_s: float) -> int:
        """Return how many more are drawn, for such as will not be seen to happen."""
        return math.ceil(self.injections(duration_s) / SPARED)

    def overtime_s(self, duration_s: float) -> float:
        """Return how much longer than `duration_s` faults may take: the last one may be postponed, and each spare."""
        spare_s = POSTPONED_S + max(kind.duration_s[1] for kind in self.kinds) + self.settle_s
        return POSTPONED_S + self.spares(duration_s) * spare_s


class Latencies(Strict):
    """How long operations take in virtual time: each draws from the seed, exponentially, with this mean and a bound.

    Messages to or from ZooKeeper that are stuck are beside that mean.
    """

    sync_ms: Annotated[float, Field(ge=0, le=100, description="A sync of a file; at most 20 times as long")] = 0.0
    read_ms: Annotated[
        float, Field(ge=0, le=500, description="A read of a coordinator that loads its groups; at most 2 s")
    ] = 0.0
    zookeeper_ms: Annotated[
        float,
        Field(
            ge=0, le=50, description="A message to or from a ZooKeeper server; at most 300 ms, one in 100 at most 1.5 s"
        ),
    ] = 0.0
    stall_ms: Annotated[
        float, Field(ge=0, le=200, description="How long a slow broker computes at a time; at most 10 times as long")
    ] = 0.0
    slow_brokers: Annotated[list[int], Field(description="Ids of the brokers that stall")] = Field(default_factory=list)

    @property
    def any(self) -> bool:
        """Whether something takes time."""
        return self != Latencies()


class SettingGroup(StrEnum):
    """A group of properties that are drawn together (`harness.scenario.settings`)."""

    LOG = "log"
    CLEANER = "cleaner"
    REPLICATION = "replication"
    GROUPS = "groups"
    TRANSACTIONS = "transactions"
    CLUSTER = "cluster"


IntRange = Annotated[list[Annotated[int, Field(ge=1, le=32)]], Field(min_length=2, max_length=2)]


class DrawSpec(Strict):
    """What the seed draws beside faults; a property or parameter that the scenario states is not drawn."""

    brokers: Annotated[IntRange | None, Field(description="Range of the number of brokers: [3, 5]")] = None
    replication_factor: Annotated[
        IntRange | None, Field(description="Range of the replicas a partition, of each topic: [2, 3]")
    ] = None
    settings: Annotated[
        list[Annotated[SettingGroup, Field(strict=False)]],
        Field(
            description="Groups of properties: log, cleaner, replication, groups, cluster; not of an external cluster"
        ),
    ] = Field(default_factory=list)
    load: Annotated[bool, Field(description="Parameters of workloads that may be drawn")] = False
    latencies: Annotated[bool, Field(description="Time that disks, ZooKeeper and processors take, if simulated")] = (
        False
    )


RoleName = Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]{0,15}$")]


class StepSpec(Strict):
    """One step of a scenario that goes step by step: what is done is said by one of its first ten keys."""

    inject: Annotated[str | None, Field(description="Kind of fault; in force until it is healed")] = None
    heal: Annotated[str | None, Field(description="Roles on which every fault is healed: A, B")] = None
    write: Annotated[
        int | None, Field(ge=1, le=100_000, description="Records to write; the step ends when all are acknowledged")
    ] = None
    when: Annotated[str | None, Field(description=f"Waits until {ALLOWED}")] = None
    hold: Annotated[
        RoleName | None,
        Field(description="Name for messages to the target that are held from now on; as the fault intercept"),
    ] = None
    lose_answer: Annotated[
        RoleName | None, Field(description="Name for messages whose answers are lost from now on; the effect is there")
    ] = None
    release: Annotated[RoleName | None, Field(description="Name of messages that are let go")] = None
    wait_s: Annotated[float | None, Field(gt=0, le=600, description="Seconds to wait")] = None
    ask: Annotated[
        str | None, Field(description="Kafka's name of a request that is sent to the target, as a client: JoinGroup")
    ] = None
    answer: Annotated[RoleName | None, Field(description="Name of a request whose answer is awaited")] = None
    target: Annotated[
        str,
        Field(
            description="Roles that a fault hits: A, B; of ask a role, leader(topic,partition), coordinator(group),"
            " transaction-coordinator(id), controller, or a broker id"
        ),
    ] = ""
    parameters: Annotated[
        dict[str, Any], Field(description="Parameters of the fault or of the producer, or fields of the request")
    ] = Field(default_factory=dict)
    version: Annotated[int | None, Field(ge=0, le=99, description="Of the request")] = None
    expect: Annotated[
        dict[str, Any] | None,
        Field(description="Fields of the answer and their values; {} if any answer is right; codes may be names"),
    ] = None
    promised: Annotated[
        dict[str, Any] | None,
        Field(
            description="As expect, with lists of allowed values: what Kafka promises to answer; another answer is a"
            " violation, and the steps go on"
        ),
    ] = None
    keep: Annotated[
        dict[RoleName, str],
        Field(description="Names for fields of the answer, {M: member_id}; $M stands for it in later requests"),
    ] = Field(default_factory=dict)
    later: Annotated[
        RoleName | None, Field(description="Name of the request, whose answer a later step awaits, if any does")
    ] = None
    times: Annotated[int, Field(ge=1, le=10_000, description="How often the request is sent")] = 1
    every_s: Annotated[float, Field(ge=0, le=600, description="Seconds from an answer to the next request")] = 0.0
    within_s: Annotated[
        float,
        Field(
            gt=0,
            le=600,
            description="Deadline for write, when, ask and answer; a fault that can heals itself after it",
        ),
    ] = 60.0

    @property
    def messages(self) -> str:
        """The name of messages that it intercepts; empty for a step that intercepts none."""
        return self.hold or self.lose_answer or ""

    @property
    def fault(self) -> str | None:
        """The kind of fault that it injects, if any."""
        return INTERCEPTION if self.messages else self.inject

    @property
    def fault_parameters(self) -> dict[str, Any]:
        """The parameters of this fault."""
        if not self.messages:
            return self.parameters
        return {"action": "hold" if self.hold else "lose-answer", **self.parameters}


class Scenario(Strict):
    """One chaos experiment, declared."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Lower case, digits and hyphens")]
    description: Annotated[str, Field(description="One sentence: what it shows")]
    driver: Annotated[str, Field(description="Where the servers run: process, docker, simulated or external")] = (
        "process"
    )
    system: Annotated[str, Field(description="What the servers are: python, kafka:3.9.1 or external")] = PYTHON
    cluster: Annotated[ClusterSpec, Field(description="The cluster under test, or the path of a cluster file")] = (
        ClusterSpec()
    )
    topics: Annotated[list[TopicSpec], Field(min_length=1, description="Topics that the run creates")]
    workloads: Annotated[list[WorkloadSpec], Field(min_length=1, description="The clients")]
    faults: Annotated[list[FaultSpec], Field(description="The schedule of faults")] = Field(default_factory=list)
    mix: Annotated[MixSpec | None, Field(description="Faults drawn from the seed, beside the schedule")] = None
    left_out: Annotated[
        list[str], Field(description="Faults that the system cannot have; noted when the scenario is loaded")
    ] = Field(default_factory=list)
    roles: Annotated[
        dict[RoleName, Literal["controller", "one"]],
        Field(description="Names of brokers for steps, fixed at the start: the controller, or one that the seed draws"),
    ] = Field(default_factory=dict)
    steps: Annotated[list[StepSpec], Field(description="Steps in a fixed order, instead of faults and mix")] = Field(
        default_factory=list
    )
    draws: Annotated[DrawSpec | None, Field(description="What else the seed draws; what a run got is in its plan")] = (
        None
    )
    latencies: Annotated[
        Latencies | None,
        Field(description="Mean durations of operations, with the driver simulated only; by default they take no time"),
    ] = None
    duration_s: Annotated[float, Field(gt=0, le=86_400, description="Seconds of load, faults included")] = 30.0
    recovery_timeout_s: Annotated[
        float, Field(gt=0, le=3600, description="Deadline for the steady state after the last heal")
    ] = 30.0
    checks: Annotated[list[str], Field(description="Names of checks; empty means all")] = Field(default_factory=list)
    objectives: Annotated[
        Objectives | None, Field(description="Limits of the service that the run must keep, beyond Kafka's promises")
    ] = None
    planted_bugs: Annotated[
        list[str], Field(description="Guards of the built-in broker that are switched off, so that the run must fail")
    ] = Field(default_factory=list)

    @property
    def logging_system(self) -> str:
        """The system whose state changes a run records: the release of an existing cluster that gives its logs."""
        place = self.cluster.external
        return self.system if place is None or place.commands.logs is None else f"kafka:{place.release}"

    @property
    def longest_drive_s(self) -> float:
        """How long the cluster may be under load and faults until it is whole again."""
        overtime_s = self.mix.overtime_s(self.duration_s) if self.mix else 0.0
        overtime_s += POSTPONED_S if len(self.faults) > 1 else 0.0
        return self.duration_s + overtime_s + self.recovery_timeout_s

    @property
    def specs(self) -> list[FaultSpec | MixKind]:
        """Every fault of the schedule, and every kind that may be drawn."""
        return [*self.faults, *(self.mix.kinds if self.mix else [])]

    @property
    def kinds(self) -> list[tuple[str, dict[str, Any]]]:
        """Name and parameters of every fault that may happen."""
        return [(spec.kind, spec.parameters) for spec in self.specs] + [
            (step.fault, step.fault_parameters) for step in self.steps if step.fault is not None
        ]
