from pathlib import Path

import pytest

from harness.contracts.registry import Kind, names
from harness.experiment.judge import checks_of
from harness.store.folder import RunFolder
from harness.store.version import VERSION, WATCHED
from tests.simulation.scenarios import scenario

NEWER = {"i26", "i28", "i29", "i30", "i31", "i32"}


@pytest.mark.parametrize(
    ("version", "asked", "left_out"),
    [
        pytest.param(VERSION, [], None, id="a run of today is judged by all"),
        pytest.param(WATCHED - 1, [], NEWER, id="a run in which nobody looked for life is judged as it was then"),
        pytest.param(WATCHED - 1, ["I31"], None, id="what a scenario asks for is tried"),
    ],
)
def test_which_checks_judge_a_run(tmp_path: Path, version: int, asked: list[str], left_out: set[str] | None) -> None:
    folder = RunFolder(tmp_path)
    folder.format.write_text(f'{{"evidence": {version}}}', encoding="utf-8")
    chosen = checks_of(folder, scenario(checks=asked))
    assert chosen == asked if left_out is None else {*names(Kind.CHECK)} - {*chosen} == left_out
