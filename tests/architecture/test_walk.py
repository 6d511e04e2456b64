"""Judging a run leads straight through the rooms, and reads what the run declares once."""

import subprocess
import sys
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from harness import phases
from harness.analysis.engine import session
from harness.analysis.judge import Judgement
from harness.progress import Silent
from harness.scenario.file import load_scenario
from harness.store.result import CheckResult
from harness.verdict import SystemVerdict
from tests.architecture.walk import walk_of

STAYS = 19
CLIMBS = 6


def test_judging_a_run_passes_few_rooms_and_seldom_climbs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = phases.create_from(load_scenario("smoke"), 1, tmp_path)
    monkeypatch.setattr(session, "spark_session", lambda **_: nullcontext())
    held = CheckResult(check="I10", promise="p", verdict=SystemVerdict.PASS)

    def judging(*_: Any, **_named: Any) -> Judgement:
        return Judgement(run_id=folder.run_id, checks=[held], remarks=[], counts={})

    folder.coverage.touch()  # it was counted when the run ended
    reads: Counter[str] = Counter()
    opened = Path.open

    def counted(path: Path, *arguments: Any, **named: Any) -> Any:
        reads[path.name] += path.parent == folder.root
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", counted)
    walk = walk_of(lambda: phases.judge(folder, progress=Silent(), judging=judging))
    assert (reads[folder.scenario.name], reads[folder.plan.name]) == (1, 1), "the run is loaded once"
    assert len(walk.stays) <= STAYS, str(walk)
    assert len(walk.climbs) <= CLIMBS, str(walk)


def test_the_phases_do_not_load_the_codecs_of_the_broker_until_they_drive() -> None:
    script = "import sys, harness.phases; print('kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
