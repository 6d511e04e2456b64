"""A producer's records and their operations: recorded before a record is sent, and when its outcome is known."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from harness.client_rules.outcomes import send_outcome
from harness.client_rules.steps import partitions_of
from harness.contracts.workloads import ClientPlan
from harness.store.history import Operation, OpKind, OpType
from harness.store.recording import Recorder
from harness.values import NULL, VALUE_ID, TopicPartition

FLUSH_MARGIN_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A record's value, headers and timestamp."""

    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Sending:
    """The sends of one process: every value is unique, and a key always goes to the same partition."""

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self.sent = recorder.next_index
        """Number of the last value: as each send is an operation, none was used before a kill."""
        self.flush_s: float = plan.parameters["message_timeout_ms"] / 1000 + FLUSH_MARGIN_S
        """How long to wait at the end for undecided records."""
        self._plan = plan
        self._recorder = recorder
        self._rng = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._content_rng = random.Random(f"{plan.seed} content")  # noqa: S311
        self._partitions = partitions_of(plan.topics)

    @property
    def done(self) -> bool:
        """Whether everything was sent."""
        return bool(self.sent >= self._plan.parameters.get("records", float("inf")))

    def invoke(
        self,
        among: Sequence[TopicPartition] = (),
        *,
        made_from: str = "",
        transactional_id: str = "",
        transaction: int = -1,
    ) -> Operation:
        """Return the next send, to one of some partitions or of all, and record it."""
        parameters, chosen = self._plan.parameters, among or self._partitions
        key_number = self._rng.randrange(parameters["keys"])
        topic, partition = chosen[key_number % len(chosen)]
        return self._recorder.invoke(
            OpKind.SEND,
            topic=topic,
            partition=partition,
            key=f"key-{key_number}",
            value=self._unique_value(),
            acks=parameters["acks"],
            made_from=made_from,
            transactional_id=transactional_id,
            transaction=transaction,
        )

    def content(self, invoked: Operation, now_ms: int) -> Content:
        """Return the content of a send: its value, or a header instead, and a timestamp."""
        parameters = self._plan.parameters
        identity = invoked.value.encode()
        headers = [(f"header-{number}", b"x" * number) for number in range(parameters.get("headers", 0))]
        timestamp_ms = now_ms - self._content_rng.randint(0, parameters.get("disorder_ms", 0))
        if invoked.value.endswith(NULL):
            return Content(value=None, headers=((VALUE_ID, identity), *headers), timestamp_ms=timestamp_ms)
        padding = self._content_rng.randint(0, parameters.get("padding_bytes", 0))
        value = identity + b" " * bool(padding) + b"x" * padding
        return Content(value=value, headers=tuple(headers), timestamp_ms=timestamp_ms)

    def _unique_value(self) -> str:
        """Return the next value: the process, and its number, padded with zeros to the configured length."""
        self.sent += 1
        if self._content_rng.random() < self._plan.parameters.get("nulls", 0):
            return f"{self._plan.process}-{self.sent}{NULL}"
        prefix = f"{self._plan.process}-"
        return f"{prefix}{self.sent:0{max(1, self._plan.parameters['value_bytes'] - len(prefix))}d}"

    def acknowledged(self, invoked: Operation, offset: int) -> None:
        """Record that a record is in the log; a negative offset means that the answer named none."""
        self._recorder.end(invoked, OpType.OK, offset=max(-1, offset))

    def never_left(self, invoked: Operation, error: str) -> None:
        """Record that a record was never sent."""
        self._recorder.end(invoked, OpType.FAIL, error=error)

    def without_report(self, invoked: Operation) -> None:
        """Record that a producer is gone, and its library did not report a record."""
        self._recorder.end(invoked, OpType.INFO, error="its producer was closed without a report")

    def given_up(self, invoked: Operation, code: int, error: str, *, tried_once: bool) -> None:
        """Record that a record is not retried any more, with the outcome by its last error."""
        self._recorder.end(invoked, send_outcome(code, tried_once=tried_once), error=error)
