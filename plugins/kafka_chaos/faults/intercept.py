"""Intercepts single messages of Kafka's protocol: holds, loses, repeats or answers them. Heals by letting them go.

A request that the target gets (or, with `direction: outbound`, sends) is caught by its API and by what it names. What
follows a held message on its connection waits, too. After a lost one nothing more passes in that direction, and the
connection is reset at the end.

Confirmed by: the receiver's answer, which comes only after a held request was let go, and never for a lost one. A hold
is also confirmed if the sender, once its request was let go, closes the connection before the answer.
"""

import asyncio
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator

from harness.cluster.capabilities import CanIntercept, Direction, Side
from harness.cluster.links.rules import UNDELIVERED, WAITING, Action, Caught, Rule
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
)
from harness.contracts.links import Sides, Way
from harness.contracts.messages import HOLDERS, caught_by
from harness.contracts.parameters import Strict
from harness.contracts.targets import Target
from harness.errors import DeadlineError
from harness.kafka.requests import CAN_FAIL, ERRORS, KEYS, READ
from harness.system.waiting import until

LOOK_EVERY_S = 0.05
SILENT_S = 0.3
"""For so long a receiver has to be without an answer to what it should not have."""
ANSWER_S = 5.0
"""How long after a request was let go its answer may take."""

LATE_ANSWER_S = 1.0

How = Annotated[Action, BeforeValidator(lambda value: Action(value) if isinstance(value, str) else value)]


class Parameters(Strict):
    """Selects messages, and says what happens to them."""

    apis: Annotated[list[str], Field(min_length=1, description="Kafka's names of requests: LeaderAndIsr, EndTxn …")]
    action: Annotated[
        How,
        Field(
            description="hold, hold-answer, lose, lose-answer, close-before, close-after, error, redeliver, duplicate,"
            " reorder"
        ),
    ]
    sides: Annotated[Sides, Field(description="Hosts at the other end: peers, clients, controllers")] = [
        Side.PEERS,
        Side.CLIENTS,
    ]
    direction: Annotated[Way, Field(description="inbound: requests that the target gets; outbound: that it sends")] = (
        Direction.INBOUND
    )
    nth: Annotated[int, Field(ge=1, le=10_000, description="The first of the matching requests that is caught")] = 1
    count: Annotated[int, Field(ge=1, le=10_000, description="How many are caught from there on")] = 1
    topic: Annotated[str, Field(description="A topic that the request names")] = ""
    partition: Annotated[int | None, Field(ge=0, description="Its partition, with topic")] = None
    group: Annotated[str, Field(description="The group that the request names")] = ""
    transactional_id: Annotated[str, Field(description="The transactional id that the request names")] = ""
    epoch: Annotated[
        int | None, Field(ge=0, description="Least leader epoch, or epoch of a producer, that the request names")
    ] = None
    hold_s: Annotated[
        float | None, Field(gt=0, le=600, description="Seconds that a message waits; by default until it is healed")
    ] = None
    error: Annotated[str, Field(description="With action error: the name of Kafka's error")] = ""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        for api in self.apis:
            _one_of("api", api, KEYS)
            if self._reads:
                _one_of("api whose content is read", api, READ)
            if self.action is Action.ERROR:
                _one_of("api that can be answered with an error alone", api, CAN_FAIL)
        if self.action is Action.ERROR:
            _one_of("error", self.error, ERRORS)
        elif self.error:
            raise ValueError("an error is for the action error")
        if self.partition is not None and not self.topic:
            raise ValueError("a partition takes a topic")
        if Side.ZOOKEEPER in self.sides:
            raise ValueError("ZooKeeper does not speak Kafka's protocol; see lose-zookeeper-reply")
        if self.hold_s is not None and self.action not in WAITING:
            raise ValueError(f"a hold_s is for {', '.join(sorted(WAITING))}")
        return self

    @property
    def _reads(self) -> bool:
        return bool(self.topic or self.group or self.transactional_id) or self.epoch is not None


def _one_of(what: str, name: str, names: Any) -> None:
    if name not in names:
        raise ValueError(f"no {what}: {name!r}; allowed: {', '.join(names)}")


class Intercept(Fault):
    """Intercepts messages; the driver itself lets them go after the fault's duration."""

    name: ClassVar[str] = "intercept"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.MESSAGES})
    requires: ClassVar[tuple[str, ...]] = ("intercept",)
    may_overlap: ClassVar[bool] = True
    controllers: ClassVar[bool] = True
    min_visible_s: ClassVar[float] = 0.5
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def prepare(
        self,
        context: FaultContext,
        target: Target,
        brokers: tuple[int, ...],
        parameters: BaseModel,
        *,
        duration_s: float,
    ) -> Injection:
        """Record the duration, and the name of the rule on each broker."""
        injection = await super().prepare(context, target, brokers, parameters, duration_s=duration_s)
        since_s, rule = round(_now_s(), 6), parameters.model_dump_json(exclude_defaults=True)
        holders = {str(broker): f"{rule} on broker {broker} since {since_s}" for broker in brokers}
        return injection.with_state(**{"at_most_s": duration_s, "since_s": since_s, HOLDERS: holders})

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Act on messages from now on."""
        assert isinstance(context.driver, CanIntercept)
        parameters = Parameters.model_validate(injection.parameters)
        rule = Rule(
            links=frozenset(),
            api_keys=frozenset(KEYS[api] for api in parameters.apis),
            error_code=ERRORS.get(parameters.error, 0),
            **parameters.model_dump(include=_OF_RULE),
        )
        for broker in injection.targets:
            await context.driver.intercept(
                injection.state[HOLDERS][str(broker)],
                broker,
                tuple(parameters.sides),
                parameters.direction,
                rule,
                at_most_s=injection.state["at_most_s"],
            )
        return injection

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Wait until a message is caught, and what its receiver did shows the effect."""
        hold_s, end_s = injection.parameters["hold_s"], injection.state["since_s"] + injection.state["at_most_s"]
        while True:
            caught = await caught_by(context.driver, injection)
            shown = [each for each in caught if _shown(each, hold_s)]
            if wrong := [each for each in caught if _wrong(each)]:
                return mismatch(f"the receiver answered {_listed(wrong)}").with_state(messages=_data(caught))
            if shown:
                return confirmed(_listed(shown)).with_state(messages=_data(caught))
            if _now_s() >= end_s + (ANSWER_S if caught else 0.0):
                break
            await asyncio.sleep(LOOK_EVERY_S)
        if caught:
            return inconclusive(f"no effect was seen of {_listed(caught)}").with_state(messages=_data(caught))
        return inconclusive(f"no {' or '.join(injection.parameters['apis'])} was there to catch")

    async def heal(self, context: FaultContext, injection: Injection) -> str:
        """Let everything go; return what was caught, with the answers that come within a second."""
        assert isinstance(context.driver, CanIntercept)
        for holder in injection.state[HOLDERS].values():
            await context.driver.let_go(holder)
        with suppress(DeadlineError):
            await until(
                lambda: caught_by(context.driver, injection),
                lambda seen: not any(map(_may_be_answered, seen)),
                what="the answers to what was let go",
                timeout_s=LATE_ANSWER_S,
            )
        return _listed(await caught_by(context.driver, injection))


_OF_RULE = {"action", "nth", "count", "topic", "partition", "group", "transactional_id", "epoch", "hold_s"}


def _shown(caught: Caught, hold_s: float | None) -> bool:
    """Return whether the effect on a message shows in what its receiver did, or did not do for a while."""
    if caught.action in UNDELIVERED:
        return caught.answered_s is None and _now_s() - caught.caught_s >= SILENT_S
    if caught.action is Action.HOLD_ANSWER:
        return caught.answered_s is not None and (hold_s is None or caught.let_go_s is not None)
    if caught.action in WAITING:
        if caught.let_go_s is None:
            return hold_s is None and _now_s() - caught.caught_s >= SILENT_S
        return caught.answered_s is not None or _gave_up(caught, caught.let_go_s)
    return caught.answered_s is not None


def _gave_up(caught: Caught, let_go_s: float) -> bool:
    """Return whether its sender closed the connection after a hold of some length, so that no answer comes."""
    left_s = caught.left_s
    return caught.action is Action.HOLD and left_s is not None and left_s >= let_go_s >= caught.caught_s + SILENT_S


def _may_be_answered(caught: Caught) -> bool:
    """Return whether its receiver has a request that it has not answered yet."""
    return caught.action not in UNDELIVERED and caught.answered_s is None


def _wrong(caught: Caught) -> bool:
    """Return whether a receiver answered what it should not have had."""
    if caught.action in UNDELIVERED:
        return caught.answered_s is not None
    if caught.action in WAITING - {Action.HOLD_ANSWER} and caught.answered_s is not None:
        return caught.let_go_s is None or caught.answered_s < caught.let_go_s
    return False


def _listed(caught: list[Caught]) -> str:
    return "; ".join(map(_described, caught)) or "nothing was caught"


def _described(caught: Caught) -> str:
    instants = {
        "caught": caught.caught_s,
        "let go": caught.let_go_s,
        "answered": caught.answered_s,
        "left by the sender": caught.left_s,
    }
    in_order = ", ".join(f"{what} at {at_s:.3f} s" for what, at_s in instants.items() if at_s is not None)
    return f"{caught.action} of {caught.described}: {in_order}"


def _data(caught: list[Caught]) -> list[dict[str, Any]]:
    return [
        {
            "api": each.described.split()[0],
            "correlation_id": each.correlation_id,
            "source": each.source,
            "destination": each.destination,
            "caught_s": each.caught_s,
            "let_go_s": each.let_go_s,
            "answered_s": each.answered_s,
            "left_s": each.left_s,
        }
        for each in caught
    ]


def _now_s() -> float:
    return asyncio.get_running_loop().time()


PLUGIN: type[Fault] = Intercept
