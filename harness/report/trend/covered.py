"""Coverage: what was tried and seen, and what never was."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.analysis.coverage.transitions import POSSIBLE
from harness.broker.wire.error_codes import ErrorCode
from harness.contracts import registry
from harness.contracts.targets import CLIENTS, EVERY_ROLE, Role
from harness.store.coverage import Coverage, Played, When

BROKERS = (Played.LEADER, Played.FOLLOWER, Played.CONTROLLER, Played.COORDINATOR)
ROLES = (*BROKERS, Played.ZOOKEEPER, Played.CLIENT, Played.NONE)
WORDS = {
    When.QUIET: "alone",
    When.RECOVERING: "replicas behind",
    When.ANOTHER: "with another fault",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Square:
    """How often a kind of fault began against one role, in one situation."""

    when: str
    tried: int = 0
    confirmed: int = 0

    @property
    def mood(self) -> str:
        """The class: good, open (some had no effect), bad (none had) or never."""
        if not self.tried:
            return "never"
        return "good" if self.confirmed == self.tried else "open" if self.confirmed else "bad"

    @property
    def text(self) -> str:
        """A symbol, which does not depend on colour, and how many were confirmed of how many."""
        symbol = {"good": "✓", "open": "◐", "bad": "✗", "never": "·"}[self.mood]
        of = f" {self.confirmed:,}" if self.tried else ""
        return symbol + of + (f" of {self.tried:,}" if self.mood in ("open", "bad") else "")


Squares = dict[Played, list[Square]]
"""By role; missing roles cannot be targets of the kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The transitions of one state machine."""

    seen: dict[str, int]
    never: list[str]
    unknown: dict[str, int]
    """Transitions that must not occur."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """What the page shows."""

    counted: int
    """Runs and schedules."""
    not_recorded: int
    """Runs and schedules without recorded coverage: they are in no number here, and no reason for a never."""
    roles: list[Played]
    kinds: dict[str, Squares]
    machines: dict[str, Machine]
    errors: dict[str, dict[str, int]]
    """By API, the most frequent first."""
    errors_never: list[str]

    @property
    def squares(self) -> int:
        """Number of squares."""
        return sum(len(squares) for by_role in self.kinds.values() for squares in by_role.values())

    @property
    def confirmed(self) -> int:
        """Number of squares with a confirmed fault."""
        of = (square for by_role in self.kinds.values() for squares in by_role.values() for square in squares)
        return sum(square.confirmed > 0 for square in of)

    @property
    def never(self) -> list[str]:
        """Kinds of fault that were never confirmed on any target."""
        return [
            kind
            for kind, by_role in self.kinds.items()
            if not any(square.confirmed for squares in by_role.values() for square in squares)
        ]


def covered(coverage: Coverage, not_recorded: int) -> Covered:
    """Return the coverage, with everything that could have been covered."""
    injected = {(each.fault, each.role, each.when): each for each in coverage.injected}
    aims = {kind: _aims(kind) for kind in registry.names(registry.Kind.FAULT)}
    for each in coverage.injected:
        aims.setdefault(each.fault, set()).add(each.role)

    def square(kind: str, role: Played, when: When) -> Square:
        each = injected.get((kind, role, when))
        return (
            Square(when=WORDS[when], tried=each.tried, confirmed=each.confirmed) if each else Square(when=WORDS[when])
        )

    return Covered(
        counted=coverage.runs,
        not_recorded=not_recorded,
        roles=[role for role in ROLES if any(role in roles for roles in aims.values())],
        kinds={
            kind: {role: [square(kind, role, when) for when in When] for role in ROLES if role in aims[kind]}
            for kind in sorted(aims)
        },
        machines={name: _machine(coverage.transitions.get(name, {}), POSSIBLE[name]) for name in POSSIBLE},
        errors={api: _by_number(counts) for api, counts in sorted(coverage.errors.items())},
        errors_never=_never(coverage.errors.values()),
    )


def _aims(kind: str) -> set[Played]:
    """Return the roles that a target of such a fault can have."""
    accepts = set(registry.fault(kind).accepts)
    aims = set(BROKERS) if accepts.intersection(EVERY_ROLE) else set()
    return aims | {role for target, role in _NO_BROKERS.items() if target in accepts}


_NO_BROKERS = {Role.ZOOKEEPER: Played.ZOOKEEPER} | dict.fromkeys(CLIENTS, Played.CLIENT)


def _machine(counts: Mapping[str, int], possible: set[str]) -> Machine:
    by_number = _by_number(counts)
    return Machine(
        seen={name: times for name, times in by_number.items() if name in possible},
        never=sorted(possible - counts.keys()),
        unknown={name: times for name, times in by_number.items() if name not in possible},
    )


def _by_number(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _never(seen: Iterable[Mapping[str, int]]) -> list[str]:
    names = {name for counts in seen for name in counts}
    return [code.name for code in ErrorCode if code is not ErrorCode.NONE and code.name not in names]
