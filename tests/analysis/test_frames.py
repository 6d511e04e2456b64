"""Frames that several threads make."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import cast

import pytest
from pyspark.sql import DataFrame

from harness.analysis import frames
from harness.analysis.frames import made_once


class Fact:
    """Stands for a fact, of which only the identity matters here."""


@pytest.fixture(autouse=True)
def _without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "stored", lambda frame: frame)


def test_what_two_threads_ask_for_at_once_is_made_once() -> None:
    made: list[Fact] = []
    both = Barrier(2)

    @made_once
    def slow(_frame: DataFrame) -> DataFrame:
        made.append(Fact())
        time.sleep(0.3)  # the other thread asks meanwhile
        return cast("DataFrame", made[-1])

    fact = cast("DataFrame", Fact())

    def ask() -> DataFrame:
        both.wait(10)
        return slow(fact)

    with ThreadPoolExecutor(2) as pool:
        answers = [answer.result() for answer in [pool.submit(ask), pool.submit(ask)]]
    assert [id(answer) for answer in answers] == [id(made[0])] * 2
    assert len(made) == 1


def test_what_could_not_be_made_is_tried_again() -> None:
    tries: list[int] = []

    @made_once
    def fragile(frame: DataFrame) -> DataFrame:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("no")
        return frame

    fact = cast("DataFrame", Fact())
    with pytest.raises(ValueError, match="no"):
        fragile(fact)
    assert fragile(fact) is fact
    assert fragile(fact) is fact
    assert len(tries) == 2
