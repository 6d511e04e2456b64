"""What do benchmarks share? Processes of their own with the memory that they take, and tables of figures."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil
from rich.table import Table

SAMPLE_S = 0.1
JVM = "java"


@dataclass(slots=True)
class Peak:
    """Highest resident memory that was seen, in bytes."""

    python: int = 0
    jvm: int = 0


def in_own_process(target: Callable[..., None], *arguments: object) -> tuple[Any, Peak]:
    """Call `target` with the arguments and a pipe in a process whose memory and JVM are fresh.

    Returns what it sends through the pipe, and the memory that it took.
    """
    receiving, sending = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(target=target, args=(*arguments, sending))
    process.start()
    sending.close()
    assert process.pid is not None, "a started process has an id"
    try:
        with watched(psutil.Process(process.pid)) as peak:
            answer = receiving.recv()
    except EOFError:
        process.join()
        raise SystemExit(f"{target.__name__}{arguments}: no answer, exit code {process.exitcode}") from None
    finally:
        process.join()
    return answer, peak


@contextmanager
def watched(process: psutil.Process) -> Iterator[Peak]:
    """Sample the memory of a process and of the JVMs below it."""
    peak, stop = Peak(), threading.Event()

    def sample() -> None:
        while not stop.wait(SAMPLE_S):
            try:
                peak.python = max(peak.python, process.memory_info().rss)
                peak.jvm = max([peak.jvm, *(jvm.memory_info().rss for jvm in jvms(process))])
            except psutil.NoSuchProcess:
                continue

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield peak
    finally:
        stop.set()
        thread.join()


def jvms(process: psutil.Process) -> list[psutil.Process]:
    """Return the JVMs below a process."""
    return [child for child in process.children(recursive=True) if child.name() == JVM]


def cpu_seconds(process: psutil.Process) -> float:
    """Return what a process has used so far."""
    times = process.cpu_times()
    return float(times.user + times.system)


def table_of_columns(title: str, columns: Sequence[Mapping[str, str]]) -> Table:
    """Return a table with a row for each figure and a column for each measurement."""
    table = Table(title, *([""] * len(columns)))
    for figure in columns[0]:
        table.add_row(figure, *(column[figure] for column in columns))
    return table


def comparison(
    heading: str, figures: Mapping[str, Mapping[str, float]], title: str | None = None, *, ratio: str = "ours / Kafka"
) -> Table:
    """Return a table with a row for each figure, a column for each peer and, with two of them, the ratio."""
    peers = list(figures.values())
    table = Table(heading, *figures, *([ratio] if len(peers) == 2 else []), title=title)
    for figure in peers[0]:
        values = [peer[figure] for peer in peers]
        quotient = [f"{values[0] / values[1]:.2f}"] if len(values) == 2 else []
        table.add_row(figure, *(f"{value:,.2f}" for value in values), *quotient)
    return table
