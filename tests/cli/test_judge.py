"""What `chaos judge` refuses before it judges, and what it leaves then."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.analysis.engine import session
from harness.cli.judge import judge
from harness.errors import EvidenceError, ScenarioError
from harness.ingest import judging
from tests.raising import raising


@pytest.fixture(autouse=True)
def nothing_to_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a session, and nothing in the evidence."""

    @contextmanager
    def no_session(_master: str | None, **_options: object) -> Iterator[None]:
        yield

    monkeypatch.setattr(session, "spark_session", no_session)
    monkeypatch.setattr(judging, "judge_history", raising(EvidenceError("there is no file")))


def test_the_facts_of_a_run_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ScenarioError, match="is the folder of a run"):
        judge(operations=["ops.jsonl"], into=str(tmp_path))


@pytest.mark.parametrize("scheme", ["", "file://", "file:"])
def test_what_is_made_of_a_history_does_not_become_evidence(tmp_path: Path, scheme: str) -> None:
    with pytest.raises(ScenarioError, match="which holds evidence"):
        judge(operations=[f"{scheme}{tmp_path}"], into=f"{tmp_path}/judged/h")
    assert list(tmp_path.iterdir()) == []


def test_evidence_that_is_refused_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="there is no file"):
        judge(operations=["ops.jsonl"], into=f"{tmp_path}/h")
    assert list(tmp_path.iterdir()) == []


def test_what_lay_in_a_folder_stays_there(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    with pytest.raises(EvidenceError, match="there is no file"):
        judge(operations=["ops.jsonl"], into=str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_check_that_is_unknown_is_named_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="unknown check 'I99'"):
        judge(operations=["ops.jsonl"], checks=["I9", "I99"], into=f"{tmp_path}/h")
    assert list(tmp_path.iterdir()) == []
