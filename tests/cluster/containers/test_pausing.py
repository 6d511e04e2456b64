"""What the engine answers to requests to freeze a container, one after the other, and what comes of it."""

from types import SimpleNamespace
from typing import cast

import pytest
from docker import DockerClient
from docker.errors import APIError

from harness.cluster.containers.engine import Engine
from harness.errors import ClusterError

GAVE_UP = "unable to freeze"
ALREADY = "Container broker-1 is already paused"
OK = ""


def engine_that_answers(answers: list[str]) -> Engine:
    def pause(name: str) -> None:
        if reason := answers.pop(0):
            raise APIError(f"to {name}", explanation=reason)

    return Engine(cast("DockerClient", SimpleNamespace(api=SimpleNamespace(pause=pause))))


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param([OK], id="at once"),
        pytest.param([GAVE_UP, GAVE_UP, OK], id="when the runtime has got hold of all threads"),
        pytest.param([GAVE_UP, ALREADY], id="by the request that the runtime gave up"),
    ],
)
def test_a_container_is_frozen(answers: list[str]) -> None:
    engine_that_answers(answers).pause("broker-1")
    assert not answers


@pytest.mark.parametrize(
    ("answers", "within_s", "reason"),
    [
        pytest.param([ALREADY], 120.0, ALREADY, id="another process has frozen it"),
        pytest.param(["No such container"], 120.0, "No such container", id="it is not there"),
        pytest.param([GAVE_UP], -1.0, GAVE_UP, id="time is over"),
    ],
)
def test_a_container_is_not_frozen(answers: list[str], within_s: float, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        engine_that_answers(answers).pause("broker-1", within_s=within_s)
