"""This broker answers and stores what Kafka 3.9.1 did in the same situations of transactions, to the word."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.simulation.loop import run
from tests.broker.simulated_brokers import simulated
from tests.shared import ROOT
from tools.side_by_side import failing_transactions, transactions
from tools.side_by_side.recording import differences


def recorded(path: Path) -> dict[str, list[str]]:
    transcripts: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return transcripts


@pytest.fixture(scope="module")
def transcripts() -> dict[str, list[str]]:
    """All situations, one after the other on one cluster, as Kafka had them."""

    async def played() -> dict[str, list[str]]:
        brokers = await simulated(transactions.BROKERS, transactions.PROPERTIES)
        return {
            each.__name__: await transactions.play(each, brokers.transport, brokers) for each in transactions.SITUATIONS
        }

    return run(played())


@pytest.mark.parametrize("situation", [pytest.param(each, id=each.__doc__) for each in transactions.SITUATIONS])
def test_a_transaction_is_as_with_kafka(situation: Any, transcripts: dict[str, list[str]]) -> None:
    assert transcripts[situation.__name__] == recorded(transactions.RECORDED)[situation.__name__]


@pytest.mark.parametrize(
    ("situation", "replicas"),
    [pytest.param(*each, id=each[0].__doc__) for each in failing_transactions.SITUATIONS.items()],
)
def test_a_transaction_without_its_coordinator_is_as_with_kafka(situation: Any, replicas: int) -> None:
    async def played() -> list[str]:
        brokers = await simulated(failing_transactions.BROKERS, failing_transactions.properties(replicas))
        return await failing_transactions.play(situation, brokers.transport, brokers)

    assert run(played()) == recorded(failing_transactions.RECORDED)[situation.__name__]


@pytest.mark.parametrize(
    ("answered", "lines"),
    [
        pytest.param(["a", "b"], [], id="the same answers differ in nothing"),
        pytest.param(["a"], ["s: - b"], id="an answer that is missing is told with a minus"),
        pytest.param(["a", "b", "c"], ["s: + c"], id="an answer that is new is told with a plus"),
    ],
)
def test_differences_are_told_line_by_line(answered: Sequence[str], lines: list[str]) -> None:
    assert differences({"s": answered}, {"s": ["a", "b"]}) == lines


def test_the_documents_say_in_how_many_situations() -> None:
    text = " ".join((ROOT / "docs/explanation/differences-from-kafka.md").read_text().split())
    assert f"plays {len(transactions.SITUATIONS)} situations of transactions" in text
    assert (
        f"adds {len(failing_transactions.SITUATIONS)} situations in which the coordinator of transactions dies" in text
    )
