"""Writes down the operations of a client process, each as it begins and as it ends."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.store.history import Operation, OpKind, OpType, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A member's identity in its group, as in `Operation`."""

    member: str = ""
    instance: str = ""
    generation: int = -1


class Recorder:
    """Numbers the operations of one process and hands each to `write`, with the time of `clock_ns`."""

    __slots__ = ("_clock_ns", "_write", "identity", "next_index", "process")

    def __init__(
        self, process: str, write: Callable[[Operation], object], clock_ns: Callable[[], int], first_index: int = 0
    ) -> None:
        self.process = process
        self.next_index = first_index
        self.identity = Identity()
        """Goes into every operation from now on."""
        self._write = write
        self._clock_ns = clock_ns

    def invoke(
        self,
        kind: OpKind,
        *,
        topic: str = "",
        partition: int = -1,
        offset: int = -1,
        key: str = "",
        value: str = "",
        acks: int = -1,
        made_from: str = "",
        transactional_id: str = "",
        transaction: int = -1,
        isolation: str = "",
        group: str = "",
        mode: str = "",
    ) -> Operation:
        """Record the start of an operation."""
        invoked = Operation(
            index=self.next_index,
            time_ns=self._clock_ns(),
            process=self.process,
            type=OpType.INVOKE,
            kind=kind,
            topic=topic,
            partition=partition,
            offset=offset,
            key=key,
            value=value,
            acks=acks,
            made_from=made_from,
            transactional_id=transactional_id,
            transaction=transaction,
            isolation=isolation,
            group=group,
            member=self.identity.member,
            instance=self.identity.instance,
            generation=self.identity.generation,
            mode=mode,
        )
        self.next_index += 1
        self._write(invoked)
        return invoked

    def end(
        self,
        invoked: Operation,
        outcome: OpType,
        *,
        offset: int | None = None,
        records: tuple[Record, ...] = (),
        error: str = "",
        value: str | None = None,
    ) -> None:
        """Record its end, with what is known now."""
        ended = Operation(  # `dataclasses.replace` takes five times as long
            index=invoked.index,
            time_ns=self._clock_ns(),
            process=invoked.process,
            type=outcome,
            kind=invoked.kind,
            topic=invoked.topic,
            partition=invoked.partition,
            offset=invoked.offset if offset is None else offset,
            key=invoked.key,
            value=invoked.value if value is None else value,
            acks=invoked.acks,
            made_from=invoked.made_from,
            transactional_id=invoked.transactional_id,
            transaction=invoked.transaction,
            isolation=invoked.isolation,
            group=invoked.group,
            member=invoked.member,
            instance=invoked.instance,
            generation=invoked.generation,
            mode=invoked.mode,
            records=records,
            error=error,
        )
        self._write(ended)
