"""Which scripts are kept, with what Kafka 3.9.1 answered, so that this project's broker is compared without Kafka?

`kept-3.9.json` has them by what they are about; `python -m tools.differential --record` asks Kafka again.
"""

import json
from dataclasses import dataclass
from pathlib import Path

from tools.differential.player import Answers
from tools.differential.scripts import Script, script_of
from tools.differential.targets import Target

KEPT = Path(__file__).with_name("kept-3.9.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
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


def kept(path: Path = KEPT) -> list[Kept]:
    """Return the kept scripts."""
    found = []
    for each in json.loads(path.read_text(encoding="utf-8")):
        answers = [step.pop("answer") for step in each["steps"]]
        script = script_of(each["steps"])
        found.append(Kept(about=each["about"], script=script, answers=[*answers, *each["answered_late"]]))
    return found


def write(scripts: list[Kept], path: Path = KEPT) -> None:
    """Write kept scripts, one step a line."""
    path.write_text(json.dumps([each.as_json() for each in scripts], indent=1, sort_keys=True) + "\n", encoding="utf-8")


async def asked_again(scripts: list[Kept], kafka: Target) -> list[Kept]:
    """Return the scripts with what Kafka answers now."""
    await kafka.warm_up()
    return [
        Kept(about=each.about, script=each.script, answers=await kafka.play(each.script, f"kept{number}-"))
        for number, each in enumerate(scripts)
    ]
