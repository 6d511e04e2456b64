"""Recorded evidence as the rows of one run: JSON Lines or Parquet, from any file system of Spark.

A line that does not fit `harness/ingest/formats.py` is dropped: it becomes no fact, its file gets a remark as
unreadable, and checks that rest on it do not answer.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from harness.analysis.engine.bisection import SPARK_ERRORS
from harness.analysis.engine.compat import scanned
from harness.analysis.engine.hadoop import Folder
from harness.analysis.engine.session import tasks_for
from harness.analysis.engine.storage import display_path, reason
from harness.analysis.frames import balanced_union
from harness.analysis.sources.lineage import PLACES, all_of
from harness.analysis.sources.lines import SCHEMAS
from harness.analysis.sources.parsed_lines import CORRUPT, with_corrupt
from harness.analysis.sources.reading import Sources, no_rows, with_walked
from harness.analysis.sources.steps import STEPS_OF, Walk
from harness.errors import EvidenceError
from harness.ingest import reading
from harness.ingest.expansion import EXPANSION, check_expansion
from harness.ingest.files import JSON, PARQUET, Files, StoredFile, stored_files
from harness.ingest.fitting import MISREAD, derived, fitting, misfit
from harness.ingest.formats import formats
from harness.ingest.proof import holes_in
from harness.ingest.reading import FILE, LINE
from harness.ingest.stored_lines import stored_lines, text_of
from harness.ingest.tables import read_table, read_tables, shaped
from harness.progress import Listener, Silent, number_of, step
from harness.store.history import OpKind, OpType
from harness.store.seal import Hole

EXPLAINED_FILES = 5


class RecordedEvidence:
    """The files of one history, by the kind of evidence in them."""

    def __init__(
        self,
        spark: SparkSession,
        paths: Mapping[str, Sequence[str]],
        into: Folder,
        *,
        expansion: int = EXPANSION,
        progress: Listener | None = None,
    ) -> None:
        """Look for the files.

        Args:
            spark: An open session.
            paths: Files, folders or globs with evidence, by its kind.
            into: Folder for the rows of lines, which the caller removes.
            expansion: Limit of the expanded size of a file, as a multiple.
            progress: Receives the progress.

        Raises:
            EvidenceError: a path has nothing readable, a file holds more than `expansion` times its
                size, or a table has other columns.
        """
        self.spark = spark
        self._into = into
        self._progress = progress or Silent()
        self._stored: dict[str, DataFrame] = {}
        self._where = reading.files_of(spark)
        self.files = {kind: _all(self._where, paths.get(kind, ())) for kind in SCHEMAS}
        for files in self.files.values():
            for file in files:
                check_expansion(self._where, file, expansion)
        self._tables = {
            kind: read_tables(spark, formats()[kind], [file for file in files if file.format == PARQUET])
            for kind, files in self.files.items()
        }

    def sources(self, run_id: str, unstated_acks: int) -> Sources:
        """Return the lines of all files as those of one run.

        Args:
            run_id: What the history is called.
            unstated_acks: What the acks of a send are taken for where none of its lines states them.
        """
        everything = [file for files in self.files.values() for file in files]
        size_bytes = sum(file.size for file in everything)
        together = tasks_for(self.spark, size_bytes) <= 1
        frames = {kind: self._lines(kind).withColumn("run_id", F.lit(run_id)) for kind in SCHEMAS}
        if together:
            frames = {kind: frame.coalesce(1) for kind, frame in frames.items()}
        torn = (
            f"{run_id}/{_named(kind, file.path, files)}"
            for kind, files in self.files.items()
            for file in files
            if file.torn
        )
        absent = set[str]().union(*(all_of(kind) for kind, files in self.files.items() if not files))
        return Sources(
            spark=self.spark,
            lines=frames,
            tables={name: with_walked(self.spark, None, [self._walk(kind, run_id)]) for kind, name in STEPS_OF.items()},
            absent=frozenset(absent),
            size_bytes=size_bytes,
            torn=tuple(torn),
            together=together,
            unstated_acks=unstated_acks,
        )

    def _walk(self, kind: str, run_id: str) -> Walk:
        """Return the steps in the text of one kind; tables do not have all that the model reads."""
        walk = Walk(kind, run_id)
        for file in self.files[kind]:
            if file.format == JSON:
                with self._where.text(file.path) as lines:
                    walk.add(lines)
        return walk

    def said(self) -> list[tuple[str, str]]:
        """Return the settings that lines of operations state, name and value of each."""
        rows = self._having(OpKind.SETTING).select("key", "value").distinct()
        return sorted((row.key, row.value) for row in rows.collect())

    def place_of(self, name: str, value: str) -> str:
        """Return file and line of the first line that states this value of a setting."""
        stated = (F.col("kind") == OpKind.SETTING.value) & (F.col("key") == name) & (F.col("value") == value)
        for file in self.files["operations"]:
            row = self._first("operations", file, stated, LINE)
            if row is not None:
                return f"{file.shown}:{row[LINE]}"
        return "a line of the history"

    def deleted_from(self) -> list[str]:
        """Return the topics whose records a client asked to delete, and did not certainly fail to."""
        lines = self._having(OpKind.DELETE_RECORDS)
        failed = lines.where(F.col("type") == OpType.FAIL).select("process", "index")
        deleted = lines.join(failed, on=["process", "index"], how="left_anti").select("topic").distinct()
        return sorted(row.topic for row in deleted.collect())

    def events(self) -> set[str]:
        """Return the kinds of state changes that occur."""
        return {row.ev for row in self._lines("state_changes").select("ev").distinct().collect()}

    def without_acks(self) -> DataFrame | None:
        """Return `process` and `index` of the sends whose acks no line states; None if there are none."""
        if self._having(OpKind.SEND, F.col("acks").isNull()).isEmpty():
            return None
        sends = self._having(OpKind.SEND).groupBy("process", "index").agg(F.max("acks").alias("acks"))
        rows = sends.where(F.col("acks").isNull()).select("process", "index")
        return None if rows.isEmpty() else rows

    def _having(self, kind: OpKind, condition: Column | None = None) -> DataFrame:
        """Return the valid lines of one kind of operation that meet a condition, without defaults."""
        wanted = F.col("kind") == kind.value
        if condition is not None:
            wanted = wanted & condition
        return self._fitting("operations", wanted).where(wanted)

    def _fitting(self, kind: str, condition: Column | None = None) -> DataFrame:
        """Return the rows of one kind, with the problem of each that does not fit.

        Rows of lines that do not meet a condition are left out.
        """
        form, schema = formats()[kind], SCHEMAS[kind]
        parts = [fitting(shaped(table, schema), form) for table in self._tables[kind]]
        if any(file.format == JSON for file in self.files[kind]):
            rows = self._rows(kind)
            parts.append(fitting(rows if condition is None else scanned(rows.where(condition)), form))
        if not parts:
            named = T.StructType([*with_corrupt(schema).fields, T.StructField(FILE, T.StringType())])
            return no_rows(self.spark, [(field.name, field.dataType.simpleString()) for field in named])
        return balanced_union(parts)

    def _rows(self, kind: str) -> DataFrame:
        """Return the lines of one kind as rows; they are read when they are first needed."""
        if kind not in self._stored:
            files = [file for file in self.files[kind] if file.format == JSON]
            size_mb = sum(file.size for file in files) / 1e6
            with step(self._progress, f"reading {number_of(len(files), 'file')} of {kind}, {size_mb:,.1f} MB"):
                self._stored[kind] = stored_lines(self.spark, self._where, files, formats()[kind], self._into)
        return self._stored[kind]

    def _lines(self, kind: str) -> DataFrame:
        form, lines = formats()[kind], self._fitting(kind)
        if not self.files[kind]:
            return lines
        known = {name: value for name, value in form.defaults.items() if (kind, name) != ("operations", "acks")}
        fits = F.col(CORRUPT).isNull()
        filled = {
            name: F.when(fits, F.coalesce(name, F.lit(value))) for name, value in known.items() if name in lines.columns
        }
        return lines.withColumns(filled | derived(kind) | {FILE: self._named(kind)})

    def _named(self, kind: str) -> Column:
        """The file of a row as remarks name it."""
        return F.concat(F.lit(f"{PLACES[kind]}/"), F.substr(FILE, F.lit(len(_parent(self.files[kind])) + 1)))

    @property
    def chained(self) -> dict[str, list[StoredFile]]:
        """The files that prove whether they are complete, by the kind of evidence in them."""
        of_kinds = {kind: [file for file in files if file.chained] for kind, files in self.files.items()}
        return {kind: files for kind, files in of_kinds.items() if files and formats()[kind].chained}

    def holes(self) -> list[Hole]:
        """Return their defects.

        Raises:
            EvidenceError: one cannot be read.
        """
        return [
            hole
            for kind, files in self.chained.items()
            for file in files
            for hole in holes_in(self._where, file, kind, _named(kind, file.path, self.files[kind]))
        ]

    def explain(self, subjects: Sequence[str]) -> list[str]:
        """Return, for the first few files with invalid lines, the place of the first such line and its problem."""
        named = {_named(kind, file.path, files): (kind, file) for kind, files in self.files.items() for file in files}
        bad = [named[subject] for subject in subjects if subject in named]
        return [self._explained(kind, file) for kind, file in bad[:EXPLAINED_FILES]]

    def _explained(self, kind: str, file: StoredFile) -> str:
        try:
            return self._first_misfit(kind, file)
        except (*SPARK_ERRORS, EvidenceError, OSError, pa.ArrowException) as error:  # everything else is judged by now
            return f"{file.shown}: the line is not found: {reason(error)}"

    def _first_misfit(self, kind: str, file: StoredFile) -> str:
        row = self._first(kind, file, F.col(CORRUPT).isNotNull(), LINE, CORRUPT)
        if row is None:
            return f"{file.shown}: every line fits"
        wrong = row[CORRUPT]
        if wrong == MISREAD:
            wrong = misfit(text_of(self._where, file, row[LINE]), SCHEMAS[kind])
        return f"{file.shown}:{row[LINE]}: {wrong}"

    def _first(self, kind: str, file: StoredFile, condition: Column, *names: str) -> Row | None:
        """Return these columns of the first line of a file that meets a condition."""
        form, schema = formats()[kind], SCHEMAS[kind]
        if file.format == JSON:
            rows = fitting(scanned(self._rows(kind).where(F.col(FILE) == file.shown)), form, LINE)
            return rows.where(condition).select(*names).orderBy(LINE).first()
        with reading.in_order(self.spark):
            rows = fitting(shaped(read_table(self.spark, form, [file], numbered=True), schema, LINE), form, LINE)
            return rows.where(condition).select(*names).orderBy(LINE).first()


def _all(where: Files, paths: Sequence[str]) -> list[StoredFile]:
    files = {file.path: file for path in paths for file in stored_files(where, path)}
    return sorted(files.values(), key=lambda file: file.path)


def _parent(files: Sequence[StoredFile]) -> str:
    """Return the folder, with its last slash, that all files are below; a URI may have two slashes."""
    folders = [file.shown.split("/")[:-1] for file in files]
    common = [steps[0] for steps in takewhile(lambda steps: len(set(steps)) == 1, zip(*folders, strict=False))]
    return "".join(f"{step}/" for step in common)


def _named(kind: str, path: str, files: Sequence[StoredFile]) -> str:
    return f"{PLACES[kind]}/{display_path(path)[len(_parent(files)) :]}"
