"""Which subjects of checks does the evidence not show, and where? Nothing found there is no answer."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Row
from pyspark.sql import functions as F

from harness.analysis.facts.build import Facts
from harness.analysis.frames import planners, union
from harness.analysis.running import broken_parts, why_broken
from harness.analysis.subjects import subjects_of
from harness.contracts.checks import Check, Settings, Subject

SHOWN_PLACES = 5
"""Places that a reason names."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """What the evidence does not show, by run id and check."""

    reasons: dict[tuple[str, str], str] = field(default_factory=dict)
    """Of each subject that was not seen everywhere: how much was not, and where."""
    absent: frozenset[tuple[str, str]] = frozenset()
    """The checks of whose subject there is no piece at all."""

    def of_run(self, run_id: str) -> dict[str, str]:
        """Return the reasons of one run, by check."""
        return {check: reason for (of, check), reason in self.reasons.items() if of == run_id}


def unseen_of(checks: Sequence[Check], facts: Facts, run_ids: Iterable[str], settings: Settings) -> Unseen:
    """Return what the evidence of runs does not show of what checks are about; large histories take several jobs.

    Args:
        checks: The checks.
        facts: All facts of these runs.
        run_ids: The runs.
        settings: What they were allowed to do, a column where they differ.
    """
    of_checks = {check.name: subjects_of(check) for check in checks}
    subjects = list(dict.fromkeys(subject for subjects in of_checks.values() for subject in subjects))
    essential = {check.about for check in checks if check.about is not None}
    counted: dict[tuple[str, Subject], Row] = {}
    broken = broken_parts(subjects, lambda some: counted.update(_counted(some, facts, settings, essential)))
    errors = {subject: why_broken(error) for subject, error in broken}
    reasons: dict[tuple[str, str], str] = {}
    absent = set()
    for run_id in run_ids:
        for check in checks:
            rows = [(each, counted.get((run_id, each))) for each in of_checks[check.name]]
            unseen = [errors[each] for each in of_checks[check.name] if each in errors]
            unseen += [_describe(each, row) for each, row in rows if row and row.unseen]
            if check.about and check.about not in errors and (run_id, check.about) not in counted:
                absent.add((run_id, check.name))
            elif unseen:
                reasons[run_id, check.name] = "; ".join(unseen)
    return Unseen(reasons, frozenset(absent))


def _counted(
    subjects: Sequence[Subject], facts: Facts, settings: Settings, essential: Collection[Subject]
) -> dict[tuple[str, Subject], Row]:
    """Return, by run id and subject, how many pieces there are, how many are unseen and where."""
    frames = [
        subject.pieces(settings, *(facts[name] for name in subject.facts)).withColumn("subject", F.lit(number))
        for number, subject in enumerate(subjects)
    ]
    place = F.when(F.col("unseen") > 0, F.struct("place", "unseen"))
    needed = F.col("subject").isin([number for number, subject in enumerate(subjects) if subject in essential])
    rows = (
        union(frames, apart=planners(frames[0].sparkSession) == 1)
        .groupBy("run_id", "subject")
        .agg(
            F.sum("number").alias("number"),
            F.sum("unseen").alias("unseen"),
            F.count(place).alias("places"),
            F.slice(F.array_sort(F.collect_list(place)), 1, SHOWN_PLACES).alias("shown"),
        )
        .where((F.col("number") > 0) & ((F.col("unseen") > 0) | needed))
    )
    return {(row.run_id, subjects[row.subject]): row for row in rows.collect()}


def _describe(subject: Subject, row: Row) -> str:
    """Return how many pieces are unseen, and where."""
    number, unseen = row["number"], row["unseen"]
    by_one = unseen == row["places"]
    places = [place if by_one else f"{place} ({count:,})" for place, count in row["shown"]]
    more = row["places"] - len(places)
    listed = ", ".join(places) + (f" and {more:,} more" if more else "")
    return f"{unseen:,} of {number:,} {subject.what} {subject.unseen}: {listed}"
