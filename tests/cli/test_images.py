"""What `chaos images build` shows where no line can replace another, as in the log of a CI job."""

import io
import time

import pytest
from rich.console import Console

from harness.cli import images


def test_a_long_step_shows_its_newest_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    out = io.StringIO()
    build = images.TerminalBuild(Console(file=out, width=40))
    build.started("base", "python:3.11-slim, or one made here")
    for now_s in (103.0, 111.0, 115.0, 240.0):
        build.line(f"I: Unpacking at {now_s:g}")
    build.finished("base", "made (141.0 s)")
    assert out.getvalue().splitlines() == [
        "base: python:3.11-slim, or one made here",
        "base: 11 s: I: Unpacking at 111",
        "base: 140 s: I: Unpacking at 240",
        "base: made (141.0 s)",
    ]
