import re
from pathlib import Path

import pytest

from harness.errors import EvidenceError
from harness.store.folder import RunFolder
from harness.store.version import VERSION, require_version, write_version
from harness.sweep.sweep import load_sweep, new_sweep, request_file
from tests.simulation.scenarios import KILL_LEADER, scenario


def test_a_new_run_says_its_version_and_one_that_does_not_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with pytest.raises(EvidenceError, match=r"format\.json is missing: no version of evidence is stated"):
        require_version(folder)
    write_version(folder, {"append": ["crc"]})
    assert require_version(folder) == {"append": ("crc",)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(f'{{"evidence": {VERSION + 1}}}', f"has version {VERSION + 1}; this program", id="later"),
        pytest.param(f'{{"evidence": {VERSION - 1}}}', f"has version {VERSION - 1}; this program", id="earlier"),
        pytest.param(f'{{"evidence": {VERSION}}}', "does not state which events its brokers log", id="no events"),
        pytest.param('{"evidence": "new"}', r"format\.json: not a version of evidence", id="no number"),
        pytest.param("[", r"format\.json: not a version of evidence", id="no JSON"),
    ],
)
def test_a_version_that_cannot_be_read_is_refused(tmp_path: Path, text: str, message: str) -> None:
    folder = RunFolder(tmp_path)
    folder.format.write_text(text, encoding="utf-8")
    with pytest.raises(EvidenceError, match=message):
        require_version(folder)


def test_a_sweep_says_its_version_too(tmp_path: Path) -> None:
    root = new_sweep(scenario(KILL_LEADER), 7, 2, tmp_path, "chaos run small").root
    file = request_file(root)
    text = file.read_text(encoding="utf-8")
    assert f'"evidence": {VERSION}' in text
    assert load_sweep(root).schedules == 2
    file.write_text(text.replace(f'"evidence": {VERSION}', '"evidence": 99'), encoding="utf-8")
    with pytest.raises(EvidenceError, match="has version 99"):
        load_sweep(root)
    file.write_text(re.sub(r'"logged":.*', '"logged": null}', text, flags=re.DOTALL), encoding="utf-8")
    with pytest.raises(EvidenceError, match="does not state which events its brokers log"):
        load_sweep(root)
