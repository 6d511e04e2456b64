"""What a run or a sweep tried and saw, counted when it ended, so that its evidence is not read again for that.

A run of an earlier version has none: it is *not recorded*, which is not the same as *never*.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from harness.errors import EvidenceError
from harness.store.result import StoredModel, reason_of
from harness.system.whole_file import replace_text

Counts = dict[str, dict[str, int]]
"""How often each was seen, by group and name."""


class Played(StrEnum):
    """What a target of a fault was in the cluster when the fault began; a broker may be several of these."""

    CONTROLLER = "controller"
    LEADER = "leader"
    FOLLOWER = "follower"
    COORDINATOR = "coordinator"
    ZOOKEEPER = "ZooKeeper"
    CLIENT = "client"
    NONE = "no role"
    """It had no part in anything, such as a broker that was down, or its role is unknown."""


class When(StrEnum):
    """The situation in which a fault began, while the load ran."""

    QUIET = "quiet"
    """No other fault was in force, and by the brokers' logs every replica was in sync."""
    RECOVERING = "recovering"
    """No other fault was in force, and a replica was still out of sync."""
    ANOTHER = "another fault"
    """Another fault was in force."""


class Injected(StoredModel):
    """How often a kind of fault began against a role, in one situation."""

    fault: str
    role: Played
    when: When
    tried: int
    confirmed: int


class Coverage(StoredModel):
    """The content of `coverage.json`."""

    runs: int = 1
    """Number of runs and schedules counted."""
    injected: list[Injected] = []
    """An injection counts once in every role of its targets."""
    transitions: Counts = {}
    """By state machine, such as partition, and by transition, such as `New → Online`."""
    errors: Counts = {}
    """By API and by the name of the error in brokers' answers; errors of clients are under their operations."""

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        replace_text(path, self.model_dump_json() + "\n")

    @classmethod
    def load(cls, path: Path) -> "Coverage | None":
        """Return what `save` wrote; None if nothing was recorded.

        Raises:
            EvidenceError: the content is something else.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            raise EvidenceError(f"{path}: not a run's coverage: {reason_of(error)}") from error


def total(parts: Iterable[Coverage]) -> Coverage:
    """Return the sum of all."""
    runs = 0
    tried: Counter[tuple[str, Played, When]] = Counter()
    confirmed: Counter[tuple[str, Played, When]] = Counter()
    transitions: dict[str, Counter[str]] = {}
    errors: dict[str, Counter[str]] = {}
    for part in parts:
        runs += part.runs
        for each in part.injected:
            tried[each.fault, each.role, each.when] += each.tried
            confirmed[each.fault, each.role, each.when] += each.confirmed
        for into, counts in ((transitions, part.transitions), (errors, part.errors)):
            for of, by_name in counts.items():
                into.setdefault(of, Counter()).update(by_name)
    return Coverage(
        runs=runs,
        injected=[
            Injected(fault=fault, role=role, when=when, tried=times, confirmed=confirmed[fault, role, when])
            for (fault, role, when), times in sorted(tried.items())
        ],
        transitions={of: dict(sorted(counts.items())) for of, counts in sorted(transitions.items())},
        errors={of: dict(sorted(counts.items())) for of, counts in sorted(errors.items())},
    )
