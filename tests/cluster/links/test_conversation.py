"""What rules make of the requests and answers of one connection: in virtual time, without sockets."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.cluster.links.conversation import Conversation, Request
from harness.cluster.links.interception import Interceptor
from harness.cluster.links.rules import Action, Caught, Rule, caught_from, rule_data, rule_from
from harness.kafka.requests import KEYS, Head, Named
from harness.simulation.loop import SimulatedLoop

LINK = ("client", "broker")
LONG_S = 100.0
END_TXN, FETCH = KEYS["EndTxn"], KEYS["Fetch"]


@dataclass
class Sent:
    """A request, or with no number the end of the connection."""

    number: int | None
    api_key: int = END_TXN
    answered: bool = True
    names: Named | None = None

    @property
    def head(self) -> Head | None:
        return None if self.number is None else Head(api_key=self.api_key, version=0, correlation_id=self.number)

    @property
    def item(self) -> str:
        return "end" if self.number is None else f"request {self.number}"

    def named(self) -> Named | None:
        return self.names


@dataclass
class Wire:
    """What came out, in order."""

    came: list[str] = field(default_factory=list)

    def to_server(self, item: Any) -> None:
        self.came.append(f"server: {item}")

    def to_client(self, item: Any) -> None:
        self.came.append(f"client: {item}")

    def lost(self, item: Any, *, of_client: bool) -> None:
        self.came.append(f"lost: {item}")

    def reset(self) -> None:
        self.came.append("reset")

    def again(self, item: Any, answered: Callable[[], None]) -> None:
        self.came.append(f"again: {item}")
        answered()

    def error(self, request: Request, error_code: int) -> str:
        return f"error {error_code}"


def rule(action: Action, **others: Any) -> Rule:
    return Rule(**{"links": frozenset({LINK}), "api_keys": frozenset({END_TXN}), "action": action, **others})


def conversed(armed: Rule, *script: int | str, at_most_s: float = LONG_S) -> tuple[list[str], list[Caught]]:
    """Return what came out of a script, and what was caught.

    A number is a request, a negative one its answer; otherwise an end, a release, or seconds that pass.
    """

    async def go() -> tuple[list[str], list[Caught]]:
        interceptor, wire = Interceptor(), Wire()
        conversation = Conversation(interceptor, LINK, wire)
        interceptor.intercept("holder", armed, at_most_s=at_most_s)
        for step in script:
            if isinstance(step, int):
                if step > 0:
                    conversation.request(Sent(step))
                else:
                    conversation.answer(-step, f"answer {-step}")
            elif step == "end":
                conversation.client_left()
                conversation.request(Sent(None))
            elif step == "release":
                interceptor.release("holder")
            else:
                await asyncio.sleep(float(step))
        return wire.came, interceptor.caught("holder")

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(go())


@pytest.mark.parametrize(
    ("armed", "script", "came"),
    [
        pytest.param(rule(Action.HOLD), (1, 2, "release", -1, -2),
                     ["server: request 1", "server: request 2", "client: answer 1", "client: answer 2"],
                     id="a held request and what follows it wait until they are released"),
        pytest.param(rule(Action.HOLD, nth=2), (1, 2, 3), ["server: request 1"],
                     id="the second of its kind is held"),
        pytest.param(rule(Action.HOLD, hold_s=3.0), (1, "2", "2", 2), ["server: request 1", "server: request 2"],
                     id="a time for which it waits, and one for the next"),
        pytest.param(rule(Action.HOLD), (1, "end", "release", -1),
                     ["server: request 1", "server: end", "client: answer 1"],
                     id="the receiver answers a held request before it hears that the sender has left"),
        pytest.param(rule(Action.HOLD_ANSWER), (1, 2, -1, -2, "release"),
                     ["server: request 1", "server: request 2", "client: answer 1", "client: answer 2"],
                     id="a held answer and what follows it wait"),
        pytest.param(rule(Action.LOSE), (1, 2, "end", "release"),
                     ["lost: request 1", "lost: request 2", "lost: end", "reset"],
                     id="nothing comes after a lost request, until the connection is reset"),
        pytest.param(rule(Action.LOSE_ANSWER), (1, 2, -1, -2, "release"),
                     ["server: request 1", "server: request 2", "lost: answer 1", "lost: answer 2", "reset"],
                     id="the effect of a request is there, and its answer is not"),
        pytest.param(rule(Action.CLOSE_BEFORE), (1,), ["lost: request 1", "reset"], id="closed instead of delivered"),
        pytest.param(rule(Action.CLOSE_AFTER), (1, -1), ["server: request 1", "lost: answer 1", "reset"],
                     id="closed instead of answered"),
        pytest.param(rule(Action.ERROR, error_code=51, nth=2), (1, 2, -1),
                     ["server: request 1", "lost: request 2", "client: answer 1", "client: error 51"],
                     id="an error comes after the answers to earlier requests"),
        pytest.param(rule(Action.REDELIVER, hold_s=1.0), (1, "2"), ["lost: request 1", "reset", "again: request 1"],
                     id="delivered over another connection"),
        pytest.param(rule(Action.DUPLICATE), (1, -1, -1, 2, -2),
                     ["server: request 1", "server: request 1", "client: answer 1", "lost: answer 1",
                      "server: request 2", "client: answer 2"],
                     id="delivered twice, and answered once"),
        pytest.param(rule(Action.REORDER), (1, 2, -2, -1),
                     ["server: request 2", "server: request 1", "client: answer 1", "client: answer 2"],
                     id="delivered after the next, and answered in the sender's order"),
        pytest.param(rule(Action.REORDER), (1, "end"), ["server: request 1", "server: end"],
                     id="without a next one it is delivered before the end"),
    ],
)  # fmt: skip
def test_a_rule_acts_on_one_connection(armed: Rule, script: tuple[int | str, ...], came: list[str]) -> None:
    assert conversed(armed, *script)[0] == came


@pytest.mark.parametrize("action", Action)
def test_nothing_is_held_after_the_end_of_a_rule(action: Action) -> None:
    came, caught = conversed(rule(action), 1, -1, "11", at_most_s=10.0)
    assert [each.waits for each in caught] == [False]
    assert came[-1] in ("reset", "again: request 1", "client: answer 1", "client: error 0", "server: request 1",
                        "lost: answer 1")  # fmt: skip


def test_instants_of_a_message_are_known() -> None:
    (caught,) = conversed(rule(Action.HOLD, hold_s=2.0), "1", 1, "1", "end", "3", -1)[1]
    instants = [caught.let_go_s, caught.answered_s, caught.left_s]
    assert [None if at_s is None else at_s - caught.caught_s for at_s in instants] == [2.0, 4.0, 1.0]
    assert caught.described == "EndTxn 1 from client to broker"
    assert not caught.waits


NAMED = Named(partitions=frozenset({("orders", 1)}), groups=frozenset({"g"}), transactional_ids=frozenset({"t"}),
              epochs=frozenset({4}))  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        pytest.param({}, True, id="any of its API"),
        pytest.param({"api_keys": frozenset({FETCH})}, False, id="another API"),
        pytest.param({"links": frozenset({("broker", "client")})}, False, id="another link"),
        pytest.param({"topic": "orders", "partition": 1}, True, id="its partition"),
        pytest.param({"topic": "orders", "partition": 2}, False, id="another partition"),
        pytest.param({"topic": "payments"}, False, id="another topic"),
        pytest.param({"group": "g", "transactional_id": "t", "epoch": 4}, True, id="all that it names"),
        pytest.param({"group": "h"}, False, id="another group"),
        pytest.param({"transactional_id": "u"}, False, id="another transactional id"),
        pytest.param({"epoch": 5}, False, id="a later epoch"),
    ],
)
def test_a_rule_is_for_certain_requests(wanted: dict[str, Any], fits: bool) -> None:
    wanting = rule(Action.LOSE, **wanted)
    assert wanting.fits(LINK, END_TXN, lambda: NAMED) is fits
    assert not wanting.reads or not wanting.fits(LINK, END_TXN, lambda: None)
    assert rule_from(rule_data(wanting)) == wanting


def test_what_was_caught_is_plain_data() -> None:
    caught = Caught(api_key=1, correlation_id=2, source="a", destination="b", action=Action.LOSE, caught_s=3.0)
    data = {"api_key": 1, "correlation_id": 2, "source": "a", "destination": "b", "action": "lose", "caught_s": 3.0}
    assert (caught_from(data).described, caught_from(data).action) == (caught.described, Action.LOSE)
