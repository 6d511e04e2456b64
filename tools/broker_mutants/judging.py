"""What do the checks make of the histories that mutants changed? A process with one session judges many at once."""

import multiprocessing
import os
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol, Self

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql.pandas.types import to_arrow_schema

from harness.sweep import jobs
from harness.sweep.executor import SimulatedSchedule
from harness.sweep.summary import findings_of
from harness.sweep.sweep import Candidate
from harness.system.engine import ENGINE_VARIABLE, Engine
from harness.verdict import ExitCode

Answers = dict[int, tuple[ExitCode, dict[str, str]]]
"""By the number of a history: what its run comes to, and what was found, violations first, each with a sentence."""


class Judging(Protocol):
    """Judges folders of histories, one after the other."""

    def ask(self, folder: Path, candidates: Sequence[Candidate]) -> None:
        """Have the histories in a folder judged: the number of each is the index of its candidate."""
        ...

    def answers(self) -> Answers:
        """Return what was made of the folder that was asked about last."""
        ...


class Judge:
    """A process that judges folders of histories, one after the other, while this one simulates."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a fork of this process would have its forks' memory too
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,))

    def __enter__(self) -> Self:
        self._process.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with suppress(OSError):
            self._ours.send(None)
        self._process.join(10)
        self._process.kill()
        self._process.join()

    def ask(self, folder: Path, candidates: Sequence[Candidate]) -> None:
        """Implements `Judging.ask`."""
        self._ours.send((folder, [*candidates]))

    def answers(self) -> Answers:
        """Implements `Judging.answers`.

        Raises:
            RuntimeError: the judge has ended.
        """
        try:
            answers: Answers = self._ours.recv()
        except EOFError:
            raise RuntimeError("the process that judges has ended") from None
        return answers


def leave(schedule: SimulatedSchedule, folder: Path) -> None:
    """Write a schedule that was simulated to a folder that is judged, in a file with the schedule's number."""
    table = pa.Table.from_pylist([schedule.row()], schema=to_arrow_schema(jobs.HISTORIES))
    parquet.write_table(table, folder / f"{schedule.number:06}.parquet", compression="zstd")


def _serve(pipe: Connection) -> None:
    """Judge what is asked until the other side ends."""
    os.environ.setdefault(ENGINE_VARIABLE, Engine.SAIL)
    from harness.analysis.engine.session import spark_session

    with spark_session(anywhere=True) as spark:
        while (request := _received(pipe)) is not None:
            folder, candidates = request
            verdicts = jobs.judge_histories(spark, folder, candidates, folder.with_suffix(".judged"))
            present = {int(path.stem) for path in folder.glob("*.parquet")}
            pipe.send({each.number: (each.exit_code, findings_of(each)) for each in verdicts if each.number in present})


def _received(pipe: Connection) -> tuple[Path, list[Candidate]] | None:
    try:
        request: tuple[Path, list[Candidate]] | None = pipe.recv()
    except EOFError:
        return None
    return request
