"""Which engine judges is said once, and never by two at a time."""

import pytest

from harness.errors import ScenarioError
from harness.system.engine import ENGINE_VARIABLE, REMOTE_VARIABLE, Engine, choose_engine, chosen_engine, chosen_remote


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, "")
    monkeypatch.delenv(REMOTE_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("before", "named", "then"),
    [
        pytest.param("", None, Engine.SPARK, id="Apache Spark by default"),
        pytest.param("sail", None, Engine.SAIL, id="what the environment says"),
        pytest.param("sail", "spark", Engine.SPARK, id="what the option says, whatever the environment does"),
    ],
)
def test_an_engine_is_chosen(before: str, named: str | None, then: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENGINE_VARIABLE, before)
    choose_engine(named)
    assert chosen_engine() is then


def test_an_engine_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ScenarioError, match="unknown engine 'nail'; known: spark, sail"):
        choose_engine("nail")


def test_a_master_is_refused_where_apache_spark_does_not_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    choose_engine("spark", "local[2]")
    monkeypatch.setenv(ENGINE_VARIABLE, "")
    monkeypatch.setenv(REMOTE_VARIABLE, "sc://there:15002")
    with pytest.raises(ScenarioError, match="--master is an option of Apache Spark"):
        choose_engine(None, "local[2]")


def test_a_server_elsewhere_and_an_engine_here_are_not_chosen_together(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_remote() is None
    monkeypatch.setenv(REMOTE_VARIABLE, "sc://there:15002")
    assert chosen_remote() == "sc://there:15002"
    monkeypatch.setenv(ENGINE_VARIABLE, "sail")
    with pytest.raises(ScenarioError, match="set one of them"):
        chosen_remote()
