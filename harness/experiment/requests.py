"""Sends requests that the steps of a scenario state, as a client, and compares the answers with what they expect.

Each request has a connection of its own, so that one that waits for its answer delays no other. It is sent once, and
again only after an error of `UNREADY` that is not the expected or promised answer.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from harness.broker.wire.codec import MalformedMessage
from harness.broker.wire.error_codes import ErrorCode, described
from harness.broker.wire.messages import FindCoordinatorRequest, MetadataRequest
from harness.broker.wire.transport import Connection, Message, PeerError, Transport
from harness.contracts.requests import as_values, error_codes, filled
from harness.errors import ClusterError
from harness.scenario.model import StepSpec
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder
from harness.values import NO_BROKER

PROCESS = "steps"
"""Its name among the clients, and its client.id."""
RETRY_S = 0.1
METADATA_S = 5.0
"""After this another broker is asked for the addresses."""
METADATA_VERSION, FIND_VERSION = 1, 1
UNREADY = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_FOR_PARTITION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    }
)
"""Errors after which a request has had no effect, so that it may be sent again."""

OF_CONTROLLERS = frozenset({"DescribeQuorum"})
"""Requests that go to a controller of a quorum itself; a broker would pass them on to the one that it knows."""

Find = Callable[[], Awaitable[int]]
"""Returns the broker that a request goes to now, -1 while there is none."""
Address = tuple[str, int]


@dataclass(slots=True, kw_only=True)
class Requests:
    """The requests of one run, and what was kept of their answers."""

    transport: Transport
    bootstrap: Sequence[Address]
    recorder: Recorder
    controllers: Mapping[int, Address] = field(default_factory=dict)
    """Where those of a quorum listen, by id."""
    _kept: dict[str, Any] = field(default_factory=dict)
    _begun: "dict[str, asyncio.Task[dict[str, Any]]]" = field(default_factory=dict)
    """By name, requests whose answers later steps await."""

    async def send(self, step: StepSpec, find: Find) -> None:
        """Send the request of a step as often as it says, each time with the answer that it expects.

        Raises:
            ClusterError: there is no answer in time, or another one.
        """
        if step.later is not None:
            self._begun[step.later] = asyncio.create_task(self._answer(step, find))
            return
        for number in range(step.times):
            await asyncio.sleep(step.every_s if number else 0.0)
            self._compare(step, await self._answer(step, find))

    async def awaited(self, step: StepSpec) -> None:
        """Wait for the answer of an earlier step's request; raises ClusterError as `send`."""
        assert step.answer is not None
        task = self._begun.pop(step.answer)
        done, _ = await asyncio.wait({task}, timeout=step.within_s)
        if not done:
            task.cancel()
            raise ClusterError(f"no answer to {step.answer} within {step.within_s:g} s")
        self._compare(step, task.result())

    async def close(self) -> None:
        """Drop requests that are not answered."""
        for task in self._begun.values():
            task.cancel()
        await asyncio.gather(*self._begun.values(), return_exceptions=True)

    def _compare(self, step: StepSpec, answer: dict[str, Any]) -> None:
        """Keep what a step keeps of an answer that is as it expects; raises ClusterError for another one."""
        what = step.ask or step.answer
        if wrong := "; ".join(_differences(self._meaning(step.expect or {}), answer, "")):
            raise ClusterError(f"the answer to {what} is not as expected: {wrong}")
        for name, path in step.keep.items():
            self._kept[name] = _at(answer, path, f"the answer to {what}")

    def _meaning(self, value: Any) -> Any:
        """Return fields with what was kept in the place of names."""
        if isinstance(value, Mapping):
            return {name: self._meaning(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._meaning(each) for each in value]
        return self._kept[value[1:]] if isinstance(value, str) and value[:1] == "$" else value

    async def _answer(self, step: StepSpec, find: Find) -> dict[str, Any]:
        assert step.ask is not None
        assert step.version is not None
        request = filled(step.ask, self._meaning(step.parameters), step.version)
        deadline_s = _now_s() + step.within_s
        while True:
            broker, connection = await self._connected(step, find, deadline_s)
            answer = await self._once(step, request, broker, connection, deadline_s)
            is_final = step.later or not _is_unready(answer) or _now_s() >= deadline_s
            wanted = self._meaning(step.expect or step.promised or {})
            if is_final or not any(_differences(wanted, answer, "")):
                return answer
            await asyncio.sleep(RETRY_S)

    async def _once(
        self, step: StepSpec, request: Message, broker: int, connection: Connection, deadline_s: float
    ) -> dict[str, Any]:
        assert step.version is not None
        promised = None if step.promised is None else self._meaning(step.promised)
        invoked = self.recorder.invoke(
            OpKind.REQUEST,
            mode=f"{step.ask} {step.version} to broker {broker}",
            key="" if promised is None else json.dumps(promised),
        )
        try:
            answer = await connection.request(request, step.version, timeout_s=max(RETRY_S, deadline_s - _now_s()))
        except PeerError as error:
            self.recorder.end(invoked, OpType.INFO, error=str(error))
            raise ClusterError(str(error)) from error
        except (MalformedMessage, TypeError, ValueError, AttributeError) as error:  # a value of the wrong type
            self.recorder.end(invoked, OpType.FAIL, error=str(error))
            raise ClusterError(f"{step.ask} cannot be encoded: {error}") from error
        except asyncio.CancelledError:
            self.recorder.end(invoked, OpType.INFO, error="no answer until the steps ended")
            raise
        finally:
            connection.close()
        values: dict[str, Any] = as_values(answer, step.version)
        is_answer = not _is_unready(values) or (not step.later and _now_s() >= deadline_s)
        broken = _differences(promised, values, "") if promised is not None and is_answer else ()
        self.recorder.end(invoked, OpType.OK, error=json.dumps(values, default=_text), value="; ".join(broken))
        return values

    async def _connected(self, step: StepSpec, find: Find, deadline_s: float) -> tuple[int, Connection]:
        """Return a connection to the broker that a request goes to; raises ClusterError."""
        while True:
            try:
                broker = await find()
                host, port = await self._address(broker, step.ask or "")
                left_s = max(RETRY_S, deadline_s - _now_s())
                return broker, await self.transport.connect(host, port, client_id=PROCESS, timeout_s=left_s)
            except (PeerError, ClusterError) as error:
                if _now_s() >= deadline_s:
                    raise ClusterError(f"{step.ask} could not be sent: {error}") from error
            await asyncio.sleep(RETRY_S)

    async def coordinator(self, key: str, *, of_transactions: bool) -> int:
        """Return the broker that coordinates a group or transactional id, -1 while there is none.

        The request makes the broker create `__consumer_offsets` or `__transaction_state` if there is none.
        """
        asked = FindCoordinatorRequest(key=key, key_type=int(of_transactions))
        answer = await self._of_any(asked, FIND_VERSION)
        return NO_BROKER if answer.error_code else int(answer.node_id)

    async def _address(self, broker: int, api: str) -> Address:
        """Return where a broker listens to clients, or as a controller; raises ClusterError."""
        if broker == NO_BROKER:
            raise ClusterError("no broker has the role")
        if api in OF_CONTROLLERS:
            if broker not in self.controllers:
                raise ClusterError(f"broker {broker} is no controller of a quorum")
            return self.controllers[broker]
        metadata = await self._of_any(MetadataRequest(topics=[]), METADATA_VERSION)
        for each in metadata.brokers:
            if each.node_id == broker:
                return each.host, each.port
        raise ClusterError(f"broker {broker} is not in the metadata")

    async def _of_any(self, request: Message, version: int) -> Message:
        """Return the answer of the first broker that gives one; raises ClusterError."""
        problems = []
        for host, port in self.bootstrap:
            try:
                connection = await self.transport.connect(host, port, client_id=PROCESS, timeout_s=METADATA_S)
                try:
                    return await connection.request(request, version, timeout_s=METADATA_S)
                finally:
                    connection.close()
            except PeerError as error:
                problems.append(str(error))
        raise ClusterError("; ".join(problems))


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _text(value: bytes | UUID) -> str:
    return str(value) if isinstance(value, UUID) else bytes(value).decode("latin-1")


def _is_unready(answer: dict[str, Any]) -> bool:
    """Return whether an answer says only that the broker cannot serve the request now."""
    errors = error_codes(answer) - {ErrorCode.NONE}
    return bool(errors) and errors <= UNREADY


def _differences(expected: Any, answer: Any, path: str) -> Iterator[str]:
    """Yield what of an answer is not as expected; it may have more fields.

    A list that is expected of a single value has all values that are allowed.
    """
    if isinstance(expected, Mapping):
        for name, each in expected.items():
            if not isinstance(answer, Mapping) or name not in answer:
                yield f"it has no {_joined(path, name)}"
            else:
                yield from _differences(each, answer[name], _joined(path, name))
    elif isinstance(expected, list) and isinstance(answer, list) and len(expected) == len(answer):
        for index, (each, theirs) in enumerate(zip(expected, answer, strict=True)):
            yield from _differences(each, theirs, _joined(path, str(index)))
    elif isinstance(expected, list) and not isinstance(answer, list | Mapping):
        of_each = ["; ".join(_differences(each, answer, path)) for each in expected]
        if all(of_each):
            yield " and ".join(of_each)
    elif isinstance(expected, str) and isinstance(answer, int) and expected in ErrorCode.__members__:
        if answer != ErrorCode[expected]:
            yield f"{path} is {described(answer)}, not {expected}"
    elif expected != (_text(answer) if isinstance(answer, bytes) else answer):
        yield f"{path} is {answer!r}, not {expected!r}"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _at(answer: Any, path: str, what: str) -> Any:
    """Return a field of an answer by its path, such as `topics.0.name`; raises ClusterError when there is none."""
    for name in path.split("."):
        try:
            answer = answer[int(name)] if isinstance(answer, list) else answer[name]
        except (KeyError, IndexError, TypeError, ValueError):
            raise ClusterError(f"{what} has no {path}") from None
    return answer
