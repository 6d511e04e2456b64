"""Scripts with what Kafka 3.9.1 answered: files of this package, made by `python -m tools.differential --keep`.

A recorded script is one that this project's broker answers in the same way, so that no intended difference is in it.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Self

from harness.client_rules.scripts.player import Answers
from harness.client_rules.scripts.script import Script, script_of


class Kind(StrEnum):
    """Which scripts there are; each kind needs other properties of its broker."""

    QUICK = "quick"
    """What a call does, it has done when it is answered."""
    SLOW = "slow"
    """Retention, cleaner and expiry have done their work when a step ends."""
    RESTARTS = "restarts"
    """The broker is stopped cleanly after a third of the calls, and killed after two thirds; some end before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A script and the answers of Kafka."""

    about: str
    script: Script
    answers: Answers

    def as_json(self) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "about": self.about,
            "steps": [
                {**step.as_json(), "answer": answer} for step, answer in zip(self.script, self.answers, strict=False)
            ],
            "answered_late": self.answers[len(self.script) :],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return what `as_json` has made."""
        steps = [dict(step) for step in value["steps"]]
        answers = [step.pop("answer") for step in steps]
        return cls(about=value["about"], script=script_of(steps), answers=[*answers, *value["answered_late"]])


def path_of(kind: Kind) -> Path:
    """Return the file of the scripts of a kind: compressed, a script a line."""
    return Path(__file__).with_name(f"{kind}-3.9.jsonl.gz")


@cache
def lines_of(kind: Kind) -> tuple[bytes, ...]:
    """Return the recorded scripts of a kind, each as a line of JSON."""
    return tuple(gzip.decompress(path_of(kind).read_bytes()).splitlines())


def recorded(line: bytes) -> Recorded:
    """Return a script that a line holds."""
    return Recorded.from_json(json.loads(line))
