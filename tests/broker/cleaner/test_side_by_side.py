"""This broker's cleaner leaves what Kafka 3.9's does in the same situations, batch by batch."""

import json

import pytest

from harness.simulation.transport import MemoryTransport
from tests.broker.whole_cluster import HOST, WholeCluster, client_port
from tools.side_by_side.cleaning import (
    BEGAN_MS,
    PROPERTIES,
    RECORDED,
    SITUATIONS,
    Situation,
    interleaved_transactions,
    play,
    transactions,
)

LOOKS_OFTEN = {"log.initial.task.delay.ms": "0", "log.retention.check.interval.ms": "200"}
"""Here retention is a job of its own; Kafka's cleaner looks after each round (differences-from-kafka.md)."""
KEEPS_MORE_HEADERS = (transactions, interleaved_transactions)
"""Here the last five batches of a producer stay as headers, in Kafka the last one (differences-from-kafka.md)."""
THREE_YEARS_MS = 3 * 365 * 86_400_000
"""So late it was when Kafka was asked."""


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.__doc__) for each in SITUATIONS])
async def test_a_compacted_topic_is_as_with_kafka(situation: Situation) -> None:
    recorded = json.loads(RECORDED.read_text())
    async with WholeCluster(PROPERTIES | LOOKS_OFTEN, wall_ms=BEGAN_MS + THREE_YEARS_MS) as cluster:
        await cluster.start(1)
        left = await play(situation, MemoryTransport(cluster.network, "client"), HOST, client_port(1))
    expected = recorded[situation.__name__]
    if situation in KEEPS_MORE_HEADERS:
        left, expected = without_headers(left), without_headers(expected)
    assert left == expected


def without_headers(lines: list[str]) -> list[str]:
    """Return the lines of batches that have records."""
    return [line for line in lines if not line.endswith(": ")]
