"""Sends a broker invalid requests over connections of their own; the broker must close them and serve other clients.

Random bytes, a frame of 2 GiB, of negative or of no length, an unknown API, bytes after a header, half a request, TLS;
also a valid batch of 2 MiB, larger than `max.message.bytes`. Refused in virtual time, where connections carry messages.

Confirmed by: closed connections, error 10 for the large batch, and answers of the same process to other clients.
"""

import asyncio
import contextlib
import random
import struct
from collections.abc import AsyncIterator, Callable
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from harness.broker.log.batch import build_batch
from harness.broker.log.records import Record
from harness.cluster.capabilities import CanSendBytes
from harness.cluster.driver import BYTES
from harness.contracts.faults import (
    Disturbance,
    Effect,
    Fault,
    FaultContext,
    Injection,
    confirmed,
    inconclusive,
    mismatch,
    not_running,
)
from harness.contracts.parameters import Strict
from harness.errors import ClusterError
from harness.system.process_state import ProcessState
from harness.values import OFFSETS_TOPIC, TopicPartition

PRODUCE, API_VERSIONS, NO_API = 0, 18, 9999
CLIENT_ID = b"hostile"
LONGEST = 2**31 - 1
BODY_BYTES = 64
ASKED = 17
"""Correlation id of a valid request."""
TOO_LARGE_BYTES = 2 * 2**20
NO_TRANSACTION = -1
ACKS_LEADER = 1
PRODUCE_TIMEOUT_MS = 1000
MESSAGE_TOO_LARGE, CORRUPT_MESSAGE = 10, 2
UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER, KAFKA_STORAGE_ERROR = 3, 6, 56
NOT_LED = (UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER, KAFKA_STORAGE_ERROR)
"""Errors if it has lost the lead meanwhile."""


class Sends(StrEnum):
    """Kinds of invalid requests."""

    RANDOM = "random"
    """A frame of random bytes."""
    OVERSIZE = "oversize"
    """A length of 2 GiB, and the first bytes of it."""
    NEGATIVE = "negative"
    """A length below zero."""
    EMPTY = "empty"
    """An empty frame."""
    UNKNOWN = "unknown"
    """A request of an unknown API."""
    GARBAGE = "garbage"
    """The header of a Produce request, followed by random bytes."""
    TRUNCATED = "truncated"
    """Half a request, then the connection is closed."""
    TLS = "tls"
    """The first bytes of a TLS client, on a listener without TLS."""
    TOO_LARGE = "too-large"
    """A Produce request with a record of 2 MiB, more than a topic accepts by default, and with a wrong CRC."""


ENDED_BY_CLIENT = frozenset({Sends.TRUNCATED})
"""After these the client closes the connection."""


class Parameters(Strict):
    """Parameters of a hostile client."""

    sends: Annotated[
        list[Annotated[Sends, Field(strict=False)]],
        Field(min_length=1, description="The requests, each over connections of its own"),
    ] = list(Sends)
    times: Annotated[int, Field(ge=1, le=1000, description="How often each")] = 5
    close_timeout_s: Annotated[
        float, Field(gt=0, le=60, description="Deadline for the broker to close each connection, or to answer others")
    ] = 10.0


class HostileClient(Fault):
    """Sends invalid requests, and checks that the broker reacts as Kafka does."""

    name: ClassVar[str] = "hostile-client"
    disturbs: ClassVar[frozenset[Disturbance]] = frozenset({Disturbance.PROCESSES})
    requires: ClassVar[tuple[str, ...]] = (BYTES,)
    Parameters: ClassVar[type[BaseModel]] = Parameters

    async def state_before(self, context: FaultContext, brokers: tuple[int, ...], duration_s: float) -> dict[str, Any]:
        """Record which brokers run, and how often each was started."""
        status = await context.driver.status()
        return {
            "running": status.running(brokers),
            "starts": status.starts(brokers),
        }

    async def inject(self, context: FaultContext, injection: Injection) -> Injection:
        """Send each over a connection of its own; count the outcomes."""
        if not_running(injection, "harass"):
            return injection
        counts: dict[str, dict[str, int]] = {}
        rng = random.Random(injection.parameters["times"])  # noqa: S311  repeatable, not secret
        for broker in injection.targets:
            for sends in map(Sends, injection.parameters["sends"]):
                for _ in range(injection.parameters["times"]):
                    became = await _sent(context, injection, broker, sends, rng)
                    counts.setdefault(sends, {}).setdefault(became, 0)
                    counts[sends][became] += 1
        return injection.with_state(counts=counts)

    async def confirm(self, context: FaultContext, injection: Injection) -> Effect:
        """Check that each connection was closed without an answer, or refused, and that other clients are served."""
        if idle := not_running(injection, "harass"):
            return idle
        counts: dict[str, dict[str, int]] = injection.state["counts"]
        refusals = ", ".join(
            f"{sends}: {became} {n} times" for sends, of_one in counts.items() for became, n in of_one.items()
        )
        outcomes = {became for of_one in counts.values() for became in of_one}
        if outcomes - {CLOSED, GIVEN_UP, REFUSED, LEADS_NOTHING, NO_CONNECTION}:
            return mismatch(f"some requests were not refused: {refusals}")
        status = await context.driver.status()
        for broker in injection.targets:
            now = status.broker(broker)
            if (now.state, now.starts) != (ProcessState.RUNNING, injection.state["starts"][str(broker)]):
                return mismatch(f"broker {broker} stopped: {refusals}")
            if not await _answers(context, injection, broker):
                return mismatch(f"broker {broker} answers no other client: {refusals}")
        if NO_CONNECTION in outcomes or outcomes <= {LEADS_NOTHING}:
            return inconclusive(f"some requests could not be sent: {refusals}")
        return confirmed(f"{refusals}; the same processes answer others")

    async def heal(self, context: FaultContext, injection: Injection) -> None:
        """Nothing to undo: no connection is left."""


CLOSED, GIVEN_UP, NO_CONNECTION = "the broker closed", "the client left", "no connection was made"
REFUSED, LEADS_NOTHING = "the broker refused it", "the broker led nothing"


async def _sent(context: FaultContext, injection: Injection, broker: int, sends: Sends, rng: random.Random) -> str:
    """Send one of them over a new connection; return the outcome."""
    timeout_s = injection.parameters["close_timeout_s"]
    try:
        led = await _led_by(context, broker) if sends is Sends.TOO_LARGE else None
        if sends is Sends.TOO_LARGE and led is None:
            return LEADS_NOTHING
        message = MESSAGES[sends](rng) if led is None else _too_large(*led, rng)
        async with _stream(context, broker, timeout_s) as (reader, writer), asyncio.timeout(timeout_s):
            writer.write(message)
            await writer.drain()
            if sends in ENDED_BY_CLIENT:
                return GIVEN_UP
            if led is not None:
                return await _answer_to_produce(reader)
            return "the broker answered" if await reader.read(1) else CLOSED
    except ClusterError:
        return NO_CONNECTION
    except (ConnectionError, EOFError):
        return CLOSED
    except TimeoutError:
        return f"nothing happened for {timeout_s:g} s"


async def _led_by(context: FaultContext, broker: int) -> TopicPartition | None:
    """Return a partition that a broker leads and clients may write to, or None."""
    partitions = await context.view.partitions()
    led = [(each.topic, each.partition) for each in partitions if each.leader == broker and each.topic != OFFSETS_TOPIC]
    return min(led, default=None)


def _too_large(topic: str, partition: int, rng: random.Random) -> bytes:
    """Return a Produce request (version 7) with acks=1 and one batch that is too large and has a flipped bit.

    With acks=all a small ISR would refuse it before its size is checked. With a valid CRC, a topic that accepts
    this size would hold a record that no client of the load has sent.
    """
    batch = bytearray(build_batch([Record(key=None, value=rng.randbytes(TOO_LARGE_BYTES), timestamp_ms=0)]))
    batch[-2] ^= 1
    name = topic.encode()
    head = struct.pack(f">hhiih{len(name)}s", NO_TRANSACTION, ACKS_LEADER, PRODUCE_TIMEOUT_MS, 1, len(name), name)
    return _framed(_header(PRODUCE, 7) + head + struct.pack(">iii", 1, partition, len(batch)) + batch)


async def _answer_to_produce(reader: asyncio.StreamReader) -> str:
    """Return the outcome of the one batch in a Produce response."""
    await reader.readexactly(12)  # length, correlation id, number of topics
    (name_bytes,) = struct.unpack(">h", await reader.readexactly(2))
    (error,) = struct.unpack(">8xh", (await reader.readexactly(name_bytes + 10))[name_bytes:])
    if error in NOT_LED:
        return LEADS_NOTHING
    return REFUSED if error in (MESSAGE_TOO_LARGE, CORRUPT_MESSAGE) else f"the broker answered with error {error}"


async def _answers(context: FaultContext, injection: Injection, broker: int) -> bool:
    """Return whether a broker answers a valid request."""
    timeout_s = injection.parameters["close_timeout_s"]
    try:
        async with _stream(context, broker, timeout_s) as (reader, writer), asyncio.timeout(timeout_s):
            writer.write(_framed(_header(API_VERSIONS, 0, ASKED)))
            (_, correlation_id) = struct.unpack(">ii", await reader.readexactly(8))
            return bool(correlation_id == ASKED)
    except (ClusterError, OSError, EOFError, TimeoutError):
        return False


@contextlib.asynccontextmanager
async def _stream(
    context: FaultContext, broker: int, timeout_s: float
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yield a connection, which is reset at the end."""
    assert isinstance(context.driver, CanSendBytes)
    reader, writer = await context.driver.open_stream(broker, timeout_s=timeout_s)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


def _header(api: int, version: int, correlation_id: int = 1) -> bytes:
    return struct.pack(f">hhih{len(CLIENT_ID)}s", api, version, correlation_id, len(CLIENT_ID), CLIENT_ID)


def _framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


MESSAGES: dict[Sends, Callable[[random.Random], bytes]] = {
    Sends.RANDOM: lambda rng: _framed(b"\x7f" + rng.randbytes(BODY_BYTES)),
    Sends.OVERSIZE: lambda rng: struct.pack(">i", LONGEST) + rng.randbytes(BODY_BYTES),
    Sends.NEGATIVE: lambda rng: struct.pack(">i", -1 - rng.randrange(LONGEST)),
    Sends.EMPTY: lambda rng: struct.pack(">i", 0),
    Sends.UNKNOWN: lambda rng: _framed(_header(NO_API, 0) + rng.randbytes(BODY_BYTES)),
    Sends.GARBAGE: lambda rng: _framed(_header(PRODUCE, 7) + b"\x7f" + rng.randbytes(BODY_BYTES)),
    Sends.TRUNCATED: lambda rng: _framed(_header(PRODUCE, 7) + rng.randbytes(BODY_BYTES))[: BODY_BYTES // 2],
    Sends.TLS: lambda rng: bytes.fromhex("1603010200010001fc0303") + rng.randbytes(BODY_BYTES),
}
"""RANDOM starts with a byte that starts no API key; the first four bytes of TLS are a length of 352 MiB."""


PLUGIN: type[Fault] = HostileClient
