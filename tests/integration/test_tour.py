"""Every command of the tour does what the tour says, in its order, typed into a shell; the longest at night."""

import os
import re
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from tests.sampling import ALL

ROOT = Path(__file__).resolve().parents[2]
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
COMMAND = re.compile(r"^    (?P<command>\S.*?)(?: +# exit code (?P<code>\d))?$", re.MULTILINE)
COMMANDS = [(match["command"], int(match["code"] or 0)) for match in COMMAND.finditer(TOUR)]
SAID = {
    "chaos list": "acks-all-on-append",
    "chaos run acks-all-on-append": "I10 leader-completeness",
    "chaos why": "I10 leader-completeness",
    "chaos explain": "is elected in epoch",
    "chaos report": "report.html",
    "chaos simulate": "I10 leader-completeness",
    "chaos shrink": "small.yaml",
    "chaos keep": "I10 leader-completeness",
    "chaos run acks-all-on-append --driver simulated --seed 7 --set planted_bugs=[]": "system PASS",
    "chaos trend": "trend.html",
}
"""What a reader sees, by how a command begins."""
AT_NIGHT = "chaos shrink"
"""Making small takes a dozen sweeps: it and what follows are for a night (CHAOS_SAMPLE=all)."""
TYPED = COMMANDS[1:] if ALL else list(takewhile(lambda each: not each[0].startswith(AT_NIGHT), COMMANDS[1:]))


def test_its_first_command_is_what_every_run_of_the_tests_does() -> None:
    assert COMMANDS[0] == ("make demo", 0)
    assert "chaos run smoke\n" in (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndemo:")[2]


@pytest.mark.whole
@pytest.mark.rotating(1, of="long")
def test_its_commands_do_what_it_says(tmp_path: Path) -> None:
    chaos = tmp_path / "bin" / "chaos"
    chaos.parent.mkdir()
    chaos.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    chaos.chmod(0o755)
    environment = {**os.environ, "PATH": f"{chaos.parent}:{os.environ['PATH']}", "COLUMNS": "160"}
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'plugins'}"
    unseen = {begins: output for begins, output in SAID.items() if any(each.startswith(begins) for each, _ in TYPED)}
    for command, code in TYPED:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )
        assert done.returncode == code, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        beginning = max((each for each in SAID if command.startswith(each)), key=len)
        assert unseen.pop(beginning) in done.stdout, command
    assert unseen == {}
    assert (tmp_path / "kept" / "acks-all" / "history.parquet").exists() is ALL
