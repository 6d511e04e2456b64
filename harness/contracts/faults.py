"""The contract of a fault plugin: inject, confirm the effect, heal; an injection in force is plain data."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.cluster.driver import ClusterDriver
from harness.contracts.members import Members
from harness.contracts.parameters import Strict
from harness.contracts.state_changes import LogFiles, StateChanges
from harness.contracts.targets import EVERY_ROLE, Role, Target
from harness.errors import ClusterError, DeadlineError
from harness.verdict import FaultVerdict
from harness.zookeeper.view import ClusterView, ZookeeperView


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """A fault in force, as data that outlives the injecting process."""

    fault: str
    targets: tuple[int, ...]
    """Broker ids."""
    parameters: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    """What `confirm` and `heal` need: the state before the injection."""

    def with_state(self, **state: Any) -> "Injection":
        """Return the injection with additional state."""
        return replace(self, state={**self.state, **state})


AIMED_AT = "aimed_at"
"""Key in the state of an injection that hits more brokers than its target: the target's brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Whether a fault really happened, with its proof in a sentence."""

    verdict: FaultVerdict
    detail: str
    state: dict[str, Any] = field(default_factory=dict)
    """What was seen, as data for the journal."""

    def with_state(self, **state: Any) -> "Effect":
        """Return the effect with data of what was seen."""
        return replace(self, state=state)


def confirmed(detail: str) -> Effect:
    """Return that a fault happened."""
    return Effect(verdict=FaultVerdict.CONFIRMED, detail=detail)


def mismatch(detail: str) -> Effect:
    """Return that something other than the requested effect happened."""
    return Effect(verdict=FaultVerdict.MISMATCH, detail=detail)


def inconclusive(detail: str) -> Effect:
    """Return that the effect is unknown."""
    return Effect(verdict=FaultVerdict.INCONCLUSIVE, detail=detail)


async def confirmed_once(effect: Awaitable[object], detail: str) -> Effect:
    """Return that a fault happened as soon as its effect shows; a mismatch if it does not in time."""
    try:
        await effect
    except DeadlineError as error:
        return mismatch(str(error))
    return confirmed(detail)


def not_running(injection: Injection, purpose: str) -> Effect | None:
    """Return that a fault proves nothing, if some targets did not run; `state["running"]` names those that did.

    `purpose` completes the message, as in "nothing to kill".
    """
    idle = sorted(set(injection.targets) - set(injection.state["running"]))
    return inconclusive(f"broker {idle} did not run, nothing to {purpose}") if idle else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultContext:
    """The parts of a run that a fault may use."""

    driver: ClusterDriver
    view: ClusterView
    logs: StateChanges | None = None
    """The brokers' logs, if they are not in files."""
    members: Members | None = None
    """The clients; None if they have ended, as when a dead run is healed."""

    @property
    def zookeeper(self) -> ZookeeperView:
        """The capabilities of ZooKeeper; raises ClusterError without one."""
        if not isinstance(self.view, ZookeeperView):
            raise ClusterError("this cluster has no ZooKeeper")
        return self.view

    @property
    def state_changes(self) -> StateChanges:
        """The brokers' logged state changes."""
        return self.logs or LogFiles(self.driver)


class MayLoseData(Strict):
    """Parameters of a fault that can remove committed records."""

    protect_committed: Annotated[
        bool,
        Field(description="Begin only when every record has another complete replica; otherwise a loss is expected"),
    ] = True
    confirm_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="Deadline for the end of the broker's registration")
    ] = 30.0
    whole_timeout_s: Annotated[
        float, Field(gt=0, le=100, description="How long to wait for complete replicas, with protect_committed")
    ] = 30.0


class Disturbance(StrEnum):
    """What a fault can do to a healthy cluster, beside ending processes. Checks excuse what follows from it."""

    PROCESSES = "processes"
    """A process that runs stands still, or lacks something that it needs to be in time."""
    MESSAGES = "messages"
    """Messages are late or lost, while every process runs."""
    DISKS = "disks"
    """Replicas go offline although their broker lives."""
    LEADERSHIP = "leadership"
    """The targets live and cannot lead."""
    FILES = "files"
    """The files of a broker that is down change."""


CONTROLLER = "what makes a broker controller"
"""Resource of faults that write to it."""
ASSIGNMENT = "the assignment of replicas"
"""Of all topics, as one znode has all requests."""


class NoParameters(Strict):
    """The parameters of a fault that takes none."""


class Fault(ABC):
    """One kind of fault. Injecting and healing are idempotent. A fault declares whatever differs from these defaults.

    Preparing and injecting have three minutes each, confirming and healing two. An error in `prepare`, `inject` or
    `confirm` makes the fault INCONCLUSIVE. Once `inject` is called, `heal` is too: `duration_s` after it
    returned, or at once after an error, with only the state from `prepare`.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[str, ...]] = ()
    """Names of capabilities (`harness.cluster.driver.CAPABILITIES`)."""
    may_overlap: ClassVar[bool] = False
    """Whether its targets may be under other faults meanwhile."""
    accepts: ClassVar[tuple[Role, ...]] = EVERY_ROLE
    """The roles that it accepts as targets."""
    hits_all: ClassVar[bool] = False
    """Whether it disturbs every broker, whatever its target."""
    min_visible_s: ClassVar[float] = 0.0
    """Least duration whose effect can be seen."""
    zookeeper: ClassVar[bool] = False
    """Whether it needs a cluster with ZooKeeper."""
    controllers: ClassVar[bool] = False
    """Whether it can hit a controller that is not a broker."""
    changes_release: ClassVar[bool] = False
    """Whether its targets get another release of the system, which `release` returns."""
    witnesses: ClassVar[tuple[str, ...]] = ()
    """The kinds of state changes (`harness/events.py`), or fields of some, by which it is prepared or confirmed."""
    exclusive_resources: ClassVar[frozenset[str]] = frozenset()
    """Exclusive resources beside brokers; faults that touch the same resource use the same word."""
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset(Disturbance)
    """What checks excuse while it is in force."""
    Parameters: ClassVar[type[BaseModel]] = NoParameters

    def resources(self, parameters: BaseModel) -> frozenset[str]:
        """Return `exclusive_resources`, with those of its parameters."""
        return self.exclusive_resources

    def conflicts_with(self, parameters: BaseModel) -> frozenset[str]:
        """Return the kinds, whatever their target, of which none may be in force meanwhile: they would hide it."""
        return frozenset()

    def min_hold_s(self, target: Target, parameters: BaseModel, session_timeout_s: float) -> float:
        """Return for at least how many seconds it holds its targets, on any machine, if longer than its duration.

        `session_timeout_s`: ZooKeeper notices a dead broker after this time.
        """
        return 0.0

    def release(self, parameters: BaseModel) -> str:
        """Return the release that its targets get, if it `changes_release`."""
        raise NotImplementedError

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Read the state of what will be disturbed, without disturbing it; goes into the journal before `inject`.

        `brokers` is the resolved `target`; the injection's `targets` are all brokers that will be disturbed.
        If possible, a fault ends by itself `duration_s` after its injection, even if the harness dies.
        """
        state = await self.state_before(context, brokers, duration_s)
        return Injection(fault=self.name, targets=brokers, parameters=parameters.model_dump(mode="json"), state=state)

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Return what `confirm` and `heal` need as plain data; the part of `prepare` that most faults define."""
        return {}

    @abstractmethod
    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Inject it; return the injection with what healing needs."""

    @abstractmethod
    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait, within a bounded time, for the effect outside the injector: process state, znodes, log lines."""

    @abstractmethod
    async def heal(self, context: FaultContext, injection: Injection) -> str | None:
        """Undo it, whether or not it took effect; raises `ClusterError` when that is impossible.

        Returns what there is to say of its end, for the journal.
        """
