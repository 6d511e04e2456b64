"""All runs of one DAG run, such as a night: which did not end as they had to, and which did?"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from chaos_airflow.views.reading import Overview, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """The runs, each in one of the lists, the newest first."""

    unexpected: list[Overview] = field(default_factory=list)
    """Over, and otherwise than was expected."""
    running: list[Overview] = field(default_factory=list)
    as_expected: list[Overview] = field(default_factory=list)
    tried_again: list[Overview] = field(default_factory=list)
    """Those of which there is a later try."""

    @property
    def rest(self) -> list[Overview]:
        """Runs that need no attention."""
        return [*self.running, *self.as_expected, *self.tried_again]

    @property
    def headline(self) -> str:
        """The answer in a few words; of how many, where the runs are not all over."""
        over = len(self.unexpected) + len(self.as_expected)
        answer = f"{len(self.unexpected)} of {over} not as expected" if self.unexpected else f"{over} as expected"
        return f"{answer}, {len(self.running)} going on" if self.running else answer

    @property
    def mood(self) -> str:
        """The class of the headline."""
        return "bad" if self.unexpected else "busy" if self.running else "good"


def night_of(rows: Sequence[Overview]) -> Night:
    """Return the runs of one DAG run, given the newest first, by what a reader wants to know of them."""
    night = Night()
    later = set()
    for row in rows:
        first = row.origin.first_try if row.origin else None
        if first in later:
            night.tried_again.append(row)
        elif row.state is State.RUNNING:
            night.running.append(row)
        else:
            (night.as_expected if row.as_expected else night.unexpected).append(row)
        later.add(first)
    return night
