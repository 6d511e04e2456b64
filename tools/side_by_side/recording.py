"""Records what real Kafka answers in situations, or compares it with what is recorded."""

import argparse
import difflib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

Situation = TypeVar("Situation", bound=Callable[..., Any])
Transcripts = dict[str, list[str]]


def record_or_check(
    recorded_in: Path, situations: Sequence[Situation], ask: Callable[[Sequence[Situation]], Transcripts]
) -> int:
    """Ask real Kafka in the situations that the command line names; return the exit status, 1 for differences."""
    parser = argparse.ArgumentParser(description=f"Real Kafka's answers in situations, kept in {recorded_in.name}.")
    parser.add_argument("situations", nargs="*", metavar="SITUATION", help="a part of a situation's name; all if none")
    parser.add_argument("--check", action="store_true", help="compare with what is recorded, and record nothing")
    options = parser.parse_args()
    wanted = options.situations or [""]
    chosen = [each for each in situations if any(part in each.__name__ for part in wanted)]
    if not chosen:
        parser.error(f"no situation is named {' or '.join(wanted)}")
    recorded: Transcripts = json.loads(recorded_in.read_text(encoding="utf-8")) if recorded_in.exists() else {}
    answered = ask(chosen)
    if options.check:
        different = differences(answered, recorded)
        sys.stdout.write("".join(f"{line}\n" for line in different))
        sys.stdout.write(f"{len(chosen)} situations, {len(different)} different lines\n")
        return int(bool(different))
    known = recorded | answered
    ordered = {each.__name__: known[each.__name__] for each in situations if each.__name__ in known}
    recorded_in.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def differences(answered: Mapping[str, Sequence[str]], recorded: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the lines that only one side has, after their situation: `-` for the recorded, `+` for the answered."""
    return [
        f"{name}: {line}"
        for name, lines in answered.items()
        for line in difflib.ndiff(recorded.get(name, []), lines)
        if line[0] in "-+"
    ]
