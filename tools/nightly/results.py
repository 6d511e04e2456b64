"""What came of the steps of a night: a JSON file a step, and the page that is made from these."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.system.whole_file import replace_text
from tools.nightly.steps import Step

Night = Mapping[str, str]
"""Commit, seed, scale and day."""


class Outcome(StrEnum):
    """What came of a step."""

    PASSED = "passed"
    DOUBTS = "doubts"
    FAILED = "failed"
    NOT_RUN = "not run"
    NOT_HERE = "not run here"
    """This machine lacks something that it takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A step, and what came of it."""

    step: Step
    outcome: Outcome = Outcome.NOT_RUN
    why: str = ""
    seconds: float = 0
    last_lines: str = ""

    @property
    def duration(self) -> str:
        """How long it took, for people."""
        minutes, seconds = divmod(round(self.seconds), 60)
        return f"{minutes} min {seconds:02} s" if minutes else f"{self.seconds:.1f} s"

    def save(self, folder: Path, night: Night) -> None:
        """Write it where the page looks for it."""
        fields = {"outcome": self.outcome, "why": self.why, "seconds": self.seconds, "last_lines": self.last_lines}
        replace_text(path_of(self.step, folder), json.dumps({"night": dict(night), "result": fields}, indent=2) + "\n")


def result_of(step: Step, folder: Path, night: Night) -> Result:
    """Return what came of a step in this night: not run, where the folder has no result, or another night's."""
    try:
        recorded = json.loads(path_of(step, folder).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Result(step=step)
    if recorded["night"] != night:
        return Result(step=step)
    fields = recorded["result"]
    return Result(step=step, **fields | {"outcome": Outcome(fields["outcome"])})


def path_of(step: Step, folder: Path) -> Path:
    """Return the file that says what came of a step."""
    return folder / f"{step.name}.json"


def worst(results: Iterable[Result]) -> Outcome:
    """Return what came of the night."""
    order = (Outcome.FAILED, Outcome.NOT_RUN, Outcome.DOUBTS, Outcome.NOT_HERE, Outcome.PASSED)
    return min((result.outcome for result in results), key=order.index)


def write_page(folder: Path, results: Sequence[Result], night: Night) -> Path:
    """Write what came of the steps so far, and return the page's path."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined
    )
    page = folder / "index.html"
    template = environment.get_template("page.html.j2")
    replace_text(page, template.render(results=results, night=night, outcome=worst(results)))
    return page
