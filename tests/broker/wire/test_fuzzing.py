"""A whole broker and streams of damaged requests: a light share of what `tools.fuzzing` sends by the million."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.broker.handlers.apis import APIS
from harness.broker.wire.codec import decode_request, decode_request_header, encode_request
from harness.broker.wire.dispatch import Dispatcher
from harness.broker.wire.messages import ApiKey, DeleteTopicsRequest, FetchRequest, MetadataRequest
from harness.simulation.loop import run
from tools.fuzzing.frames import Frames
from tools.fuzzing.target import Fault, FuzzedBroker

STREAMS = 20
_frames = Frames(random.Random(1))
VALID = [_frames.valid() for _ in range(500)]


@given(rng=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_stream_of_bytes_harms_a_broker(rng: random.Random) -> None:
    async def play() -> None:
        async with FuzzedBroker.running(seed=1) as target:
            frames = Frames(rng, (target.broker_epoch,))
            for _ in range(STREAMS):
                damaged = [frames.damaged(rng.choice(VALID), rng.choice(VALID)) for _ in range(rng.randint(1, 2))]
                await target.feed(frames.stream(damaged), reset=rng.random() < 0.1)
                assert target.faults == []
        assert target.faults == []

    run(play())


@pytest.mark.parametrize("key", APIS, ids=lambda key: key.name)
def test_frames_are_requests_before_they_are_damaged(key: ApiKey) -> None:
    frames, rng = Frames(random.Random(1)), random.Random(2)
    made = [frame for frame in VALID if frame[:2] == key.to_bytes(2)]
    headers = [decode_request_header(frame) for frame in made]
    assert {type(decode_request(APIS[key].request, header)) for header in headers} == {APIS[key].request}
    assert any(frames.damaged(frame, rng.choice(made)) != frame for frame in made)


async def fail(request: Any, context: Any) -> Any:
    raise KeyError("a mistake of ours")


async def wait(request: Any, context: Any) -> Any:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("handler", "request_", "faults"),
    [
        pytest.param(fail, MetadataRequest(topics=None), ["crash"], id="a handler that fails"),
        pytest.param(wait, MetadataRequest(topics=None), ["hang"], id="a handler that never answers"),
        pytest.param(wait, FetchRequest(max_wait_ms=2**31 - 1, topics=[]), [], id="a request that may wait for long"),
    ],
)
def test_what_harms_a_broker_is_noticed(
    handler: Callable[..., Any], request_: Any, faults: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> list[str]:
        async with FuzzedBroker.running(seed=1) as target:
            monkeypatch.setattr(Dispatcher, "answer", lambda _self, request, context: handler(request, context))
            await target.feed(bytes(encode_request(request_, 8, correlation_id=1, client_id="c")))
            monkeypatch.undo()
        return [fault.kind for fault in target.faults]

    assert run(play()) == faults


def test_a_request_may_wait_behind_one_whose_version_nobody_knows() -> None:
    """As the fuzzer met it: ApiVersions v4, which is refused, and DeleteTopics with three weeks of time."""
    unknown = bytes.fromhex("0000001a00120004fffffc18000466757a7a00001d00010001750000003200")
    topics = DeleteTopicsRequest(topic_names=["__consumer_offsets"], timeout_ms=1_929_379_840)
    stream = unknown[:30] + bytes(encode_request(topics, 3, correlation_id=1, client_id="c"))

    async def play() -> list[Fault]:
        async with FuzzedBroker.running(seed=1) as target:
            await target.feed(stream)
        return target.faults

    assert run(play()) == []
