"""Groups of consumers share partitions: members subscribe, are moved by rebalances, commit, and may come and go.

The records come from another workload: a scenario names `produce-consume` beside it.
"""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BaseModel, Field, model_validator

from harness.contracts.parameters import SESSION_TIMEOUTS, Draw, Idle, Size, Strict
from harness.contracts.workloads import ClientPlan, Stop, Workload
from harness.scenario.seeds import derived_seed
from harness.store.history import JsonlWriter

Assignor = Literal["range", "cooperative-sticky"]
Commits = Literal["manual", "automatic"]


class Parameters(Strict):
    """Parameters of groups; the groups take the values of a list in turn."""

    name: Annotated[
        str,
        Field(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="Prefix of the names of groups, before their number"),
    ] = "group"
    groups: Annotated[int, Size(), Field(ge=1, le=32, description="Number of groups")] = 1
    members: Annotated[int, Size(), Field(ge=1, le=32, description="Member processes of each group")] = 3
    restless: Annotated[
        int, Size(), Field(ge=0, le=32, description="Members of each group that leave and come back, again and again")
    ] = 0
    assignor: Annotated[
        Assignor | Annotated[list[Assignor], Field(min_length=1)],
        Field(description="range gives everything back before each rebalance, cooperative-sticky only what moves"),
    ] = "range"
    commits: Annotated[
        Commits | Annotated[list[Commits], Field(min_length=1)],
        Field(description="manual: by the application, after a poll and before it gives partitions back; or automatic"),
    ] = "manual"
    static: Annotated[bool, Field(description="Members have a group.instance.id (KIP-345)")] = False
    doubles: Annotated[
        int, Size(), Field(ge=0, le=32, description="Further members that have the instances of the first ones")
    ] = 0
    session_timeout_ms: Annotated[
        int,
        Draw((1000, 3000)),
        SESSION_TIMEOUTS,
        Field(ge=100, le=1_800_000, description="The group removes a member after this time without a heartbeat"),
    ] = 6000
    heartbeat_interval_ms: Annotated[
        int, Draw((100, 300)), Field(ge=10, le=600_000, description="Between two heartbeats")
    ] = 500
    max_poll_interval_ms: Annotated[
        int,
        Draw((3000, 6000)),
        Field(ge=100, le=86_400_000, description="A member that does not poll for longer leaves its group"),
    ] = 10_000
    commit_interval_s: Annotated[
        float, Draw((0.1, 2.0)), Field(gt=0, le=3600, description="Between two commits of a member")
    ] = 0.5
    stay_s: Annotated[float, Field(gt=0, le=3600, description="How long a restless member stays")] = 4.0
    away_s: Annotated[float, Idle(), Field(gt=0, le=3600, description="How long it is away")] = 1.0
    request_timeout_ms: Annotated[int, Field(ge=10, le=300_000, description="Of one request")] = 2000
    final_read_timeout_s: Annotated[
        float, Field(gt=0, le=3600, description="Deadline for the group to read to the end")
    ] = 30.0

    @model_validator(mode="after")
    def _times_fit(self) -> Self:
        if self.max_poll_interval_ms < self.session_timeout_ms:
            raise ValueError("max_poll_interval_ms must be session_timeout_ms at least")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ValueError("heartbeat_interval_ms must be less than session_timeout_ms")
        if self.restless > self.members:
            raise ValueError(f"of {self.members} members {self.restless} cannot be restless")
        if self.doubles and not (self.static and self.doubles <= self.members):
            raise ValueError("doubles have the instances of static members, one each at most")
        return self


class ConsumeGroup:
    """The load of applications that share partitions."""

    name: ClassVar[str] = "consume-group"
    Parameters: ClassVar[type[BaseModel]] = Parameters

    def clients(
        self, parameters: BaseModel, *, bootstrap_servers: str, topics: dict[str, int], seed: int
    ) -> list[ClientPlan]:
        """Return the members of every group; they are stopped after the producers."""
        assert isinstance(parameters, Parameters)
        return [
            ClientPlan(
                process=f"{parameters.name}-{group}-member-{member}",
                workload=self.name,
                role="member",
                bootstrap_servers=bootstrap_servers,
                topics=topics,
                seed=derived_seed(seed, "member", group, member),
                parameters=_of_member(parameters, group, member),
                stop_order=1,
            )
            for group in range(1, parameters.groups + 1)
            for member in range(1, parameters.members + parameters.doubles + 1)
        ]

    def run(self, plan: ClientPlan, operations: JsonlWriter, stop: Stop) -> None:
        """Be a member until `stop` is set; then read until the group reaches the end."""
        from kafka_chaos.workloads.clients.subscriber import subscribe

        subscribe(plan, operations, stop)


_OF_GROUPS = {"name", "groups", "members", "restless", "static", "doubles"}


def _of_member(parameters: Parameters, group: int, member: int) -> dict[str, object]:
    """Return the parameters of one member; both numbers count from 1."""
    stays = member > parameters.restless
    instance = member if member <= parameters.members else member - parameters.members
    return {
        **parameters.model_dump(mode="json", exclude=_OF_GROUPS),
        "group": f"{parameters.name}-{group}",
        "instance": f"{parameters.name}-{group}-instance-{instance}" if parameters.static else "",
        "assignor": _in_turn(parameters.assignor, group),
        "commits": _in_turn(parameters.commits, group),
        "stay_s": 0.0 if stays else parameters.stay_s,
    }


def _in_turn(choice: str | list[Assignor] | list[Commits], group: int) -> str:
    choices = [choice] if isinstance(choice, str) else choice
    return choices[(group - 1) % len(choices)]


PLUGIN: type[Workload] = ConsumeGroup
