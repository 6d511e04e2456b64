from pathlib import Path

import pytest

from harness.errors import EvidenceError, ScenarioError
from harness.ingest.settings import EVERY_REPLICA, AllowedSettings, load_settings, otherwise, stated_in


def test_what_is_not_stated_is_taken_at_its_strictest() -> None:
    settings = load_settings(None, []).for_checks()
    assert settings.acks == {-1}
    assert settings.min_insync_replicas == EVERY_REPLICA
    assert (settings.unclean_leader_election, settings.power_loss, settings.idempotence) == (False, False, True)
    assert settings.read_from_start


def test_each_setting_that_is_not_stated_may_be_lenient() -> None:
    others = otherwise(AllowedSettings(acks=1, power_loss=False))
    assert {decides: getattr(each, decides.partition("=")[0]) for decides, each in others.items()} == {
        "min_insync_replicas=NUMBER": 1,
        "unclean_leader_election=false": True,
        "idempotence=true": False,
        "read_from_start=true": False,
        "deleting_topics=none": "*",
        "compacted_topics=none": "",
    }


def test_lines_of_a_history_state_what_options_do_not_and_the_most_lenient_of_them_holds() -> None:
    lines = [("idempotence", "true"), ("idempotence", "false"), ("acks", "all"), ("min_insync_replicas", "2")]
    settings = of_lines(*lines).under(AllowedSettings(min_insync_replicas=3))
    assert (settings.idempotence, settings.acks, settings.min_insync_replicas) == (False, -1, 3)
    assert settings.model_fields_set == {"idempotence", "acks", "min_insync_replicas"}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        pytest.param("idempotent", "true", r"idempotent=true: unknown key", id="a name that is none"),
        pytest.param("", "true", r"ops.jsonl:7: =true: unknown key", id="an empty name"),
        pytest.param("retention.ms", "1", "ops.jsonl:7: .* state .* as deleting_topics", id="another of Kafka's names"),
        pytest.param("acks.x[0]", "{a: b", r"acks\.x\[0\]=\{a: b: not YAML", id="a path, and no YAML"),
        pytest.param("acks", "2", r"acks=2: must be -1, 0 or 1", id="a value that is none"),
        pytest.param("compacted_topics", "a b", "compacted_topics=a b: must match", id="a topic that cannot be"),
        pytest.param("idempotence", "{a", r"idempotence=\{a: not YAML", id="a value that is not YAML"),
    ],
)
def test_a_line_that_states_what_is_no_setting_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(EvidenceError, match=message):
        of_lines((name, value))


def of_lines(*lines: tuple[str, str]) -> AllowedSettings:
    return stated_in(lines, lambda *_: "ops.jsonl:7")


def test_settings_have_the_names_that_clients_and_brokers_use_for_them(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("enable.idempotence: false\nmin.insync.replicas: 2\n", encoding="utf-8")
    expected = AllowedSettings(idempotence=False, min_insync_replicas=2)
    assert load_settings(file, []) == expected
    assert load_settings(None, ["enable.idempotence=false", "min.insync.replicas=2"]) == expected
    assert of_lines(("enable.idempotence", "False"), ("min.insync.replicas", "2")) == expected


def test_a_statement_that_contradicts_the_history_applies_and_is_said() -> None:
    history, option = AllowedSettings(acks=1, idempotence=True), AllowedSettings(acks=-1, idempotence=True)
    assert history.contradicting(option) == [
        "the history states acks=1, options or the settings file state acks=all, which applies"
    ]
    assert history.under(option).acks == -1


def test_what_clients_deleted_is_deleted_whatever_is_stated() -> None:
    stated = AllowedSettings(deleting_topics="none").deleting(["a"])
    assert stated.for_checks().deleting_topics == "a"
    assert AllowedSettings().deleting([]).model_fields_set == set()


def test_topics_of_all_lines_hold_together() -> None:
    lines = [("compacted_topics", "none"), ("deleting_topics", "a,b"), ("deleting_topics", '["b", "5"]')]
    settings = of_lines(*lines)
    assert (settings.for_checks().deleting_topics, settings.for_checks().compacted_topics) == ("a,b,5", "")
    assert (settings.text("deleting_topics"), settings.text("compacted_topics")) == ("a,b,5", "none")


def test_options_come_before_the_file_and_both_are_remembered_as_said(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("acks: all\nmin_insync_replicas: 3\n", encoding="utf-8")
    settings = load_settings(file, ["min_insync_replicas=2", "idempotence=false"])
    assert (settings.acks, settings.min_insync_replicas, settings.idempotence) == (-1, 2, False)
    assert settings.model_fields_set == {"acks", "min_insync_replicas", "idempotence"}
    assert settings.unclean_leader_election == AllowedSettings().unclean_leader_election


@pytest.mark.parametrize(
    ("text", "sets", "message"),
    [
        pytest.param("acks: 1\nack: 1\n", [], r"yaml:2: ack: unknown key \(did you mean acks\?\)", id="a typing error"),
        pytest.param("acks: 2\n", [], r"yaml:1: acks: must be -1, 0 or 1, not 2", id="no such acks"),
        pytest.param("", ["power_loss=maybe"], "power_loss: must be a valid boolean", id="no boolean"),
        pytest.param("min_insync_replicas: 0\n", [], "yaml:1: min_insync_replicas: must be greater", id="too few"),
        pytest.param("- acks\n", [], "yaml:1: must be a mapping of keys", id="a list"),
        pytest.param("acks: [\n", [], r"yaml:\d: not YAML", id="not YAML"),
        pytest.param("cleanup.policy: compact\n", [], "yaml:1: cleanup.policy: .* as compacted_topics", id="a hint"),
        pytest.param("", ["auto.offset.reset=earliest"], "as read_from_start", id="a hint on an option"),
        pytest.param(
            "idempotence: true\nenable.idempotence: true\n", [], "yaml:2: .* which is given too", id="two names"
        ),
        pytest.param("", ["min_insync_replicas"], r"must be key\.path=value", id="an option without a value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, sets: list[str], message: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=message):
        load_settings(file if text else None, sets)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="no such file"):
        load_settings(tmp_path / "none.yaml", [])
