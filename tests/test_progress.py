"""Long steps are announced, with their duration."""

import threading

import pytest

from harness import progress
from harness.progress import Silent, step


class Heard(Silent):
    """Keeps what is said, and knows when the second sentence has come."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.second = threading.Event()

    def message(self, text: str) -> None:
        self.sentences.append(text)
        if len(self.sentences) == 2:
            self.second.set()


def test_a_step_says_how_long_it_took_when_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    instants = iter((5.0, 7.5))
    monkeypatch.setattr(progress, "monotonic", lambda: next(instants))
    monkeypatch.setattr(progress, "SILENCE_S", 3600)
    heard = Heard()
    with step(heard, "facts"):
        assert heard.sentences == []
    assert heard.sentences == ["facts: done in 2.5 s"]


def test_a_step_that_is_long_says_so_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "monotonic", lambda: 5.0)
    monkeypatch.setattr(progress, "SILENCE_S", 0.001)
    heard = Heard()
    with step(heard, "facts"):
        assert heard.second.wait(120)
    assert heard.sentences[0] == "facts: 0 s so far"


def test_a_step_that_fails_is_not_done() -> None:
    heard = Heard()
    with pytest.raises(ZeroDivisionError), step(heard, "facts"):
        raise ZeroDivisionError
    assert heard.sentences == []
