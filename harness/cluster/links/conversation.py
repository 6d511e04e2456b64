"""What one connection carries, and what rules on messages make of it: a state machine without sockets.

A direction that is held keeps its order: what follows waits. One that is dead passes nothing more; its connection is
reset when the rule ends, as over TCP nothing can be lost from the middle of a connection that goes on.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from harness.cluster.links.interception import Held, Interceptor
from harness.cluster.links.rules import Action, Caught
from harness.kafka.requests import Head, Named


class Request(Protocol):
    """A request on its way, as a shell has it."""

    @property
    def head(self) -> Head | None:
        """What it begins with; None for something that is no request."""
        ...

    @property
    def item(self) -> Any:
        """What is handed over."""
        ...

    @property
    def answered(self) -> bool:
        """Whether it gets an answer."""
        ...

    def named(self) -> Named | None:
        """What it names; None where that cannot be read."""
        ...


class Wire(Protocol):
    """What a shell does for a conversation."""

    def to_server(self, item: Any) -> None:
        """Hand something over to the host that answers."""
        ...

    def to_client(self, item: Any) -> None:
        """Hand something over to the host that asked."""
        ...

    def lost(self, item: Any, *, of_client: bool) -> None:
        """Forget something that came in and will not come out."""
        ...

    def reset(self) -> None:
        """Break the connection; both hosts hear of it."""
        ...

    def again(self, item: Any, answered: Callable[[], None]) -> None:
        """Send a request over a new connection between the same hosts; drop its answer, and say that it came."""
        ...

    def error(self, request: Request, error_code: int) -> Any:
        """Return the answer that is an error."""
        ...


class _Way:
    """One direction: what comes in is dealt with in order, unless something is held."""

    def __init__(self, arrive: Callable[[Any], None], lose: Callable[[Any], None]) -> None:
        self._arrive = arrive
        self._lose = lose
        self._waiting: deque[Any] = deque()
        self.held = False
        self._dead = False

    def put(self, arrived: Any) -> None:
        """Deal with it now or later."""
        self._waiting.append(arrived)
        self._flow()

    def hold(self) -> None:
        """Let all that follows wait."""
        self.held = True

    def go_on(self) -> None:
        """Deal with what waits."""
        self.held = False
        self._flow()

    def kill(self) -> None:
        """Lose all that follows."""
        self._dead = True

    def _flow(self) -> None:
        while self._waiting and (self._dead or not self.held):
            deal = self._lose if self._dead else self._arrive
            deal(self._waiting.popleft())


class Conversation:
    """One connection, from the host that asks (`link[0]`) to the one that answers."""

    def __init__(self, interceptor: Interceptor, link: tuple[str, str], wire: Wire) -> None:
        self._interceptor = interceptor
        self._link = link
        self._wire = wire
        self._requests = _Way(self._arrived, lambda request: wire.lost(request.item, of_client=True))
        self._answers = _Way(self._answered, lambda answer: wire.lost(answer[1], of_client=False))
        self._over = False
        self._unanswered: deque[int] = deque()
        """Correlation ids of requests, in the order in which their sender expects the answers."""
        self._strict = False
        """Whether answers come in another order than their requests, and have to wait for each other."""
        self._early: dict[int, Any] = {}
        """Answers that came before those of earlier requests."""
        self._caught: dict[int, tuple[Held, Caught]] = {}
        """By correlation id, until answered."""
        self._twice: set[int] = set()
        """Requests that were sent twice, and are answered once so far."""
        self._behind: Callable[[], None] | None = None
        """Delivers a request that waits for the next one."""
        self._last: int | None = None
        """The request that must be answered before the other host hears that its sender has left."""

    @property
    def holds_requests(self) -> bool:
        """Whether requests wait."""
        return self._requests.held

    # --- as the shell calls it ---

    def request(self, request: Request) -> None:
        """Take something in that the sender of requests has sent."""
        if self._over:
            self._wire.to_server(request.item)
        else:
            self._requests.put(request)

    def answer(self, correlation_id: int | None, item: Any) -> None:
        """Take something in that the other host has sent; without an id it is no answer."""
        if self._over:
            self._wire.to_client(item)
        else:
            self._answers.put((correlation_id, item))

    def client_left(self) -> None:
        """Note that the sender of requests has ended the connection, which the other host may hear of later."""
        for _, caught in self._caught.values():
            caught.left_s = caught.left_s or _now_s()

    # --- requests ---

    def _arrived(self, request: Request) -> None:
        behind, self._behind = self._behind, None
        head = request.head
        if behind is not None:
            if head is None:  # the connection ends, so there is no next request
                behind()
                self._deliver(request)
            else:
                self._deliver(request)
                behind()
        elif head is None or (found := self._interceptor.catch(self._link, head, request.named)) is None:
            self._deliver(request)
        else:
            held, caught = found
            if request.answered:
                self._unanswered.append(head.correlation_id)
                self._caught[head.correlation_id] = found
            self._act(request, held, caught)

    def _deliver(self, request: Request) -> None:
        if request.head is not None and request.answered:
            self._unanswered.append(request.head.correlation_id)
        self._wire.to_server(request.item)

    def _act(self, request: Request, held: Held, caught: Caught) -> None:
        item, rule, wire = request.item, held.rule, self._wire
        match caught.action:
            case Action.HOLD:
                self._requests.hold()
                self._later(held, caught, lambda: self._let_request_go(caught, item))
            case Action.REORDER:
                self._strict = True
                self._behind = self._later(held, caught, lambda: self._no_longer_behind(item))
            case Action.DUPLICATE:
                if request.answered:
                    self._twice.add(caught.correlation_id)
                wire.to_server(item)
                wire.to_server(item)
            case Action.ERROR:
                wire.lost(item, of_client=True)
                self._strict = True
                self._give(caught.correlation_id, wire.error(request, rule.error_code))
            case Action.LOSE:
                wire.lost(item, of_client=True)
                self._requests.kill()
                held.ends.append(self._reset)
            case Action.CLOSE_BEFORE:
                wire.lost(item, of_client=True)
                self._reset()
            case Action.REDELIVER:
                wire.lost(item, of_client=True)
                self._reset()
                self._later(held, caught, lambda: wire.again(item, lambda: _note_answer(caught)))
            case _:
                wire.to_server(item)

    def _let_request_go(self, caught: Caught, item: Any) -> None:
        """Hand it over; of a sender that has left, the receiver hears only after its answer."""
        self._wire.to_server(item)
        if caught.left_s is None or caught.correlation_id not in self._caught:
            self._requests.go_on()
        else:
            self._last = caught.correlation_id

    def _let_answer_go(self, correlation_id: int, item: Any) -> None:
        self._give(correlation_id, item)
        self._answers.go_on()

    def _no_longer_behind(self, item: Any) -> None:
        self._behind = None
        self._wire.to_server(item)

    # --- answers ---

    def _answered(self, answer: tuple[int | None, Any]) -> None:
        correlation_id, item = answer
        if correlation_id is None:
            self._wire.to_client(item)
            return
        if correlation_id in self._twice and correlation_id not in self._caught:
            self._twice.discard(correlation_id)
            self._wire.lost(item, of_client=False)
            return
        found = self._caught.pop(correlation_id, None)
        if found is None:
            self._give(correlation_id, item)
            return
        held, caught = found
        _note_answer(caught)
        if correlation_id == self._last:
            self._requests.go_on()
        if held.over:
            self._give(correlation_id, item)
            return
        match caught.action:
            case Action.HOLD_ANSWER:
                self._answers.hold()
                self._later(held, caught, lambda: self._let_answer_go(correlation_id, item))
            case Action.LOSE_ANSWER:
                self._wire.lost(item, of_client=False)
                self._answers.kill()
                held.ends.append(self._reset)
            case Action.CLOSE_AFTER:
                self._wire.lost(item, of_client=False)
                self._reset()
            case _:
                self._give(correlation_id, item)

    def _give(self, correlation_id: int, item: Any) -> None:
        """Hand an answer over, when those of all earlier requests are if their order may have changed."""
        if not self._strict or correlation_id not in self._unanswered:
            if correlation_id in self._unanswered:
                self._unanswered.remove(correlation_id)
            self._wire.to_client(item)
            return
        self._early[correlation_id] = item
        while self._unanswered and self._unanswered[0] in self._early:
            self._wire.to_client(self._early.pop(self._unanswered.popleft()))

    # --- ends ---

    def _later(self, held: Held, caught: Caught, deliver: Callable[[], object]) -> Callable[[], None]:
        """Deliver something once: after the time of its rule, at the end of the rule, or when called."""

        def let_go() -> None:
            if caught.let_go_s is None:
                caught.let_go_s = _now_s()
                deliver()

        held.ends.append(let_go)
        if held.rule.hold_s is not None:
            self._interceptor.after(held.rule.hold_s, let_go)
        return let_go

    def _reset(self) -> None:
        if not self._over:
            self._over = True
            for way in (self._requests, self._answers):
                way.kill()
                way.go_on()
            self._wire.reset()


def _note_answer(caught: Caught) -> None:
    caught.answered_s = caught.answered_s or _now_s()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
