"""Keeps how long the tests of a run took: by folder, and the slowest."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

SLOWEST = 50


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the durations beside the JUnit file; fixtures count for the test that was the first to need them."""
    if config.option.xmlpath:
        reports = (each for of_kind in terminalreporter.stats.values() for each in of_kind)
        path = Path(config.option.xmlpath).with_suffix(".durations.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines(reports)) + "\n", encoding="utf-8")


def lines(reports: Iterable[object]) -> Iterator[str]:
    """Yield the seconds of every folder, and of the slowest tests."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] += report.duration
    folders: defaultdict[str, list[float]] = defaultdict(list)
    for nodeid, took_s in seconds.items():
        folders[Path(nodeid.partition("::")[0]).parent.as_posix()].append(took_s)
    yield f"{len(seconds)} tests, {sum(seconds.values()):.0f} s of all workers together"
    for folder, of_tests in sorted(folders.items(), key=lambda item: -sum(item[1])):
        yield f"{sum(of_tests):8.1f} s  {len(of_tests):5} tests  {folder}"
    yield f"the {SLOWEST} slowest"
    for nodeid, took_s in sorted(seconds.items(), key=lambda item: -item[1])[:SLOWEST]:
        yield f"{took_s:8.1f} s  {nodeid}"
