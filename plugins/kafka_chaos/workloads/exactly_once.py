"""Groups read input topics and write a result for each record, in transactions that commit the offsets.

Producers write the inputs; readers read all topics at both isolation levels.
"""

from typing import Annotated, ClassVar, Self

from pydantic import BaseModel, Field, model_validator

from harness.contracts.parameters import SESSION_TIMEOUTS, Draw, Idle, Size, Strict
from harness.contracts.workloads import ClientPlan, Stop, Workload
from harness.errors import PluginError
from harness.scenario.seeds import derived_seed
from harness.store.history import READ_COMMITTED, READ_UNCOMMITTED, JsonlWriter
from harness.values import ACKS_ALL

PIPE = "pipe"


class Parameters(Strict):
    """Parameters of the load."""

    name: Annotated[
        str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Groups are called by it and their number")
    ] = "pipeline"
    inputs: Annotated[list[str], Field(min_length=1, description="Topics that the groups read", examples=[["orders"]])]
    outputs: Annotated[list[str], Field(min_length=1, description="Topics that they write", examples=[["payments"]])]
    producers: Annotated[int, Size(), Field(ge=1, le=32, description="Processes that write the inputs")] = 1
    consumers: Annotated[
        int, Size(), Field(ge=0, le=32, description="Consumer processes, in turn read_committed and read_uncommitted")
    ] = 2
    groups: Annotated[int, Size(), Field(ge=1, le=32, description="Number of groups; each one reads all inputs")] = 1
    members: Annotated[int, Size(), Field(ge=1, le=32, description="Member processes of each group")] = 2
    doubles: Annotated[
        int, Size(), Field(ge=0, le=32, description="Further members that have the transactional ids of the first ones")
    ] = 0
    rate_per_s: Annotated[float, Size(), Field(gt=0, le=100_000, description="Records a second, of each producer")] = (
        20.0
    )
    records_of_transaction: Annotated[
        int, Size(), Draw((1, 5, 30)), Field(ge=1, le=100_000, description="Records of a transaction at most")
    ] = 10
    abort_share: Annotated[
        float, Draw((0.0, 0.1)), Field(ge=0, le=1, description="Share of transactions that are aborted on purpose")
    ] = 0.05
    away_s: Annotated[
        float, Idle(), Field(gt=0, le=3600, description="How long a member stays away after a transaction that failed")
    ] = 0.5
    session_timeout_ms: Annotated[
        int,
        Draw((1000, 3000)),
        SESSION_TIMEOUTS,
        Field(ge=100, le=1_800_000, description="A member without a heartbeat for longer is removed from its group"),
    ] = 6000
    heartbeat_interval_ms: Annotated[int, Field(ge=10, le=600_000, description="Between two heartbeats")] = 300
    max_poll_interval_ms: Annotated[
        int, Field(ge=100, le=86_400_000, description="A member that does not poll for longer leaves its group")
    ] = 10_000
    transaction_timeout_ms: Annotated[
        int,
        Draw((1500, 5000)),
        Field(ge=100, le=900_000, description="The coordinator aborts a transaction that is open for longer"),
    ] = 5000
    message_timeout_ms: Annotated[
        int, Field(ge=100, le=600_000, description="After this a record, or the end of a transaction, is given up")
    ] = 4000
    request_timeout_ms: Annotated[int, Field(ge=10, le=300_000, description="Of one request")] = 2000
    keys: Annotated[int, Size(), Field(ge=1, le=100_000, description="Number of distinct keys")] = 24
    linger_ms: Annotated[float, Field(ge=0, le=900_000, description="Wait for more records of a batch")] = 5.0
    final_read_timeout_s: Annotated[float, Field(gt=0, le=3600, description="Deadline for reading to the end")] = 30.0

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.doubles > self.members:
            raise ValueError("doubles have the transactional ids of other members, of one each at most")
        if both := sorted({*self.inputs} & {*self.outputs}):
            raise ValueError(f"a topic is an input or an output, not both: {', '.join(both)}")
        if self.heartbeat_interval_ms >= self.session_timeout_ms or self.max_poll_interval_ms < self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms < session_timeout_ms <= max_poll_interval_ms must hold")
        return self


class ExactlyOnce:
    """The load of applications that read, transform and write (KIP-447)."""

    name: ClassVar[str] = "exactly-once"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the producers, which are stopped first, the members, and the readers, which are stopped last."""
        assert isinstance(parameters, Parameters)
        if topics and (missing := sorted({*parameters.inputs, *parameters.outputs} - topics.keys())):
            raise PluginError(f"the scenario has no topic {', '.join(missing)}")
        outputs = {name: topics.get(name, 0) for name in parameters.outputs}
        settings = {**parameters.model_dump(mode="json", exclude=_OF_GROUPS), **_FOR_ALL}
        producers = range(1, parameters.producers + 1)
        consumers = range(parameters.consumers)
        roles: list[tuple[str, str, dict[str, object]]] = []
        roles += [("producer", f"source-{number}", {"topics": parameters.inputs}) for number in producers]
        roles += [(PIPE, *_member(parameters, *which, outputs)) for which in _members(parameters)]
        roles += [("consumer", f"sink-{each + 1}", {"isolation": _LEVELS[each % len(_LEVELS)]}) for each in consumers]
        return [
            ClientPlan(
                process=process,
                workload=self.name,
                role=role,
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, role, process),
                parameters={**settings, **own},
                stop_order=_STOP_ORDER[role],
            )
            for role, process, own in roles
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
        """Produce, transform or read until `stop` is set, and finish."""
        if plan.role == "producer":
            from kafka_chaos.workloads.clients.producer import produce

            produce(plan, operations, stop)
        elif plan.role == PIPE:
            from kafka_chaos.workloads.clients.pipe import transform

            transform(plan, operations, stop)
        else:
            from kafka_chaos.workloads.clients.group_member import consume

            consume(plan, operations, stop)


_LEVELS = (READ_COMMITTED, READ_UNCOMMITTED)
_STOP_ORDER = {"producer": 0, PIPE: 1, "consumer": 2}
_OF_GROUPS = {"name", "inputs", "outputs", "producers", "consumers", "groups", "members", "doubles"}
_FOR_ALL = {
    "acks": ACKS_ALL,
    "idempotence": True,
    "value_bytes": 0,
    "max_in_flight": 5,
    "retries": 1000,
    "batch_records": 10_000,
    "commit_interval_s": 0.5,
    "reread": False,
}


def _members(parameters: Parameters) -> list[tuple[int, int]]:
    """Return group and number of each member, both from 1."""
    of_group = range(1, parameters.members + parameters.doubles + 1)
    return [(group, number) for group in range(1, parameters.groups + 1) for number in of_group]


def _member(parameters: Parameters, group: int, number: int, outputs: dict[str, int]) -> tuple[str, dict[str, object]]:
    """Return process and own parameters of a member; a double has the transactional id of an earlier one."""
    first = number if number <= parameters.members else number - parameters.members
    own: dict[str, object] = {
        "group": f"{parameters.name}-{group}",
        "transactional_id": f"{parameters.name}-{group}-id-{first}",
        "topics": parameters.inputs,
        "outputs": outputs,
        "isolation": READ_COMMITTED,
        "assignor": "range",
        "commits": "transactional",
        "instance": "",
        "stay_s": 0.0,
    }
    return f"{parameters.name}-{group}-member-{number}", own


PLUGIN: type[Workload] = ExactlyOnce
