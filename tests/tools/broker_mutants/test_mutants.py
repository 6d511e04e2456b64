"""Which mutants are made of a function, what they are called, and which of them a sample has."""

import inspect
import json
import re
from pathlib import Path
from textwrap import dedent, indent

import pytest

from tools.broker_mutants.mutants import (
    BROKER,
    FUNCTIONS_LEFT_OUT,
    LEFT_OUT,
    ROOMS,
    every_mutant,
    mistakes_of,
    mutants_of,
    mutated,
    sample,
)
from tools.broker_mutants.reasons import equivalent, unreached

HEAD = "async def decide(self, log, epoch, isr):\n"


def changes(body: str, returns: str = "object") -> set[tuple[str, str, str]]:
    """Return operator, before and after of each mutant of a function."""
    source = HEAD.replace(":\n", f" -> {returns}:\n") + indent(dedent(body).strip(), "    ") + "\n"
    return {(each.operator, each.before, each.after) for each in mutants_of("log/log.py", source)}


@pytest.mark.parametrize(
    ("body", "change"),
    [
        pytest.param("return a < b", ("comparison-moved", "a < b", "a <= b"), id="a comparison is moved by one"),
        pytest.param("return a < b", ("comparison-turned", "a < b", "a >= b"), id="a comparison is turned round"),
        pytest.param("f(a + 1)", ("comparison-moved", "a + 1", "a"), id="a number is one less"),
        pytest.param("if a:\n    return 1\nf()", ("guard-out", "a", "False"), id="a guard is taken out"),
        pytest.param("if a:\n    return 1\nf()", ("condition-true", "a", "True"), id="a guard always holds"),
        pytest.param("if a:\n    g()\nf()", ("branch-out", "a", "False"), id="a branch is never taken"),
        pytest.param("return f(a and b)", ("condition-out", "a and b", "b"), id="a part of a condition is left out"),
        pytest.param("self.x = a\nf()", ("assignment-out", "self.x = a", "pass"), id="an assignment is left out"),
        pytest.param("f(a)\ng()", ("call-out", "f(a)", "pass"), id="a call is left out"),
        pytest.param("self.e.set()\nf()", ("wake-up-out", "self.e.set()", "pass"), id="a wake-up is left out"),
        pytest.param("await f()\ng()", ("await-out", "await f()", "pass"), id="an await is left out"),
        pytest.param("f()\nself.x = 1", ("statements-swapped", "f(); self.x = 1", "self.x = 1; f()"), id="two swapped"),
        pytest.param("return max(a, b)", ("max-for-min", "max(a, b)", "min(a, b)"), id="max for min"),
        pytest.param("return a.get(b, 0)", ("default-instead", "a.get(b, 0)", "0"), id="a default instead of a value"),
        pytest.param("a.pop(b)\nf()", ("entry-kept", "a.pop(b)", "pass"), id="an entry of a map is not removed"),
        pytest.param("del a[b]\nf()", ("entry-kept", "del a[b]", "pass"), id="an entry is not deleted"),
        pytest.param(
            "return epoch < self.epoch",
            ("version-not-compared", "epoch < self.epoch", "False"),
            id="an epoch is not compared",
        ),
        pytest.param(
            "f(Set(path=p, version=v))",
            ("version-not-compared", "Set(path=p, version=v)", "Set(path=p, version=-1)"),
            id="ZooKeeper is to compare no version",
        ),
    ],
)
def test_a_mistake_is_planted(body: str, change: tuple[str, str, str]) -> None:
    assert change in changes(body)


def test_a_function_that_returns_nothing_ends_early() -> None:
    assert ("early-return", "g()", "return; g()") in changes("f()\ng()", returns="None")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param('"""Text that says a < b."""', id="a docstring"),
        pytest.param("logger.info('a < b', a < b)", id="logging"),
        pytest.param("self.state_log.emit(Elected(epoch=max(a, b)))", id="the state-change log"),
        pytest.param("raise ValueError(f'{max(a, b)}' if a < b else '')", id="the text of an error"),
        pytest.param("assert a < b, max(a, b)", id="an assertion"),
        pytest.param("x: int = f'{a + 1}'", id="a text"),
    ],
)
def test_what_the_broker_tells_is_not_changed(body: str) -> None:
    assert changes(body) == set()


def test_names_that_a_statement_binds_are_not_used_before() -> None:
    assert not [each for each in changes("x = f()\ng(x)") if each[0] == "statements-swapped"]


def test_keys_outlive_edits_elsewhere_in_the_module() -> None:
    source = inspect.cleandoc("""
        def first(a, b):
            return a < b

        def second(a, b):
            if a < b and a < b:
                return max(a, b)
            return a
    """)
    edited = "LIMIT = 7\n\n\n" + source.replace("def first(a, b):", "def first(a, b):\n    f(a)")
    before, after = ([each.key for each in mutants_of("log/log.py", text)] for text in (source, edited))
    assert len(set(before)) == len(before)
    assert set(before) - set(after) == set()


def test_a_mutant_is_the_module_with_one_change() -> None:
    source = "def least(a, b):\n    return min(a, b)\n"
    (mutant,) = (each for each in mutants_of("log/log.py", source) if each.operator == "max-for-min")
    names: dict[str, object] = {}
    exec(mutated(mutant, source, "log.py"), names)
    assert names["least"](1, 2) == 2  # type: ignore[operator]


def test_a_larger_sample_begins_as_a_smaller_one_and_another_seed_draws_others() -> None:
    mutants = list(mutants_of("log/log.py", (BROKER / "log/log.py").read_text(encoding="utf-8")))
    small = sample(mutants, 10, 1)
    assert sample(mutants, 20, 1)[:10] == small
    assert sample(mutants[::-1], 10, 1) == small
    assert sample(mutants, 10, 2) != small


def test_every_room_has_mutants_and_what_is_set_apart_is_there() -> None:
    mutants = list(every_mutant())
    assert {each.room for each in mutants} == set(ROOMS.values())
    keys = {each.key for each in mutants}
    assert len(keys) == len(mutants)
    assert equivalent().keys() - keys == set(), "a mutant that is set apart is no more: take it out of equivalent.yaml"
    assert [module for module in LEFT_OUT if not (BROKER / module).exists()] == []
    assert [each for each in FUNCTIONS_LEFT_OUT if any(key.startswith(f"{each} ") for key in keys)] == []
    assert [each for each in FUNCTIONS_LEFT_OUT if not _is_there(*each.split(" "))] == [], "take it out"
    assert all(re.match(r"[A-Za-z]", reason) for reason in (*equivalent().values(), *unreached().values()))
    gone = [each for each in unreached() if not any(key.startswith(each) for key in keys)]
    assert gone == [], "no mutant begins so any more: take it out of unreached.yaml"


def _is_there(module: str, function: str) -> bool:
    return f"def {function.rpartition('.')[2]}(" in (BROKER / module).read_text(encoding="utf-8")


def test_a_mistake_that_is_made_by_hand_changes_its_lines(tmp_path: Path) -> None:
    source = (BROKER / "log/log.py").read_text(encoding="utf-8")
    (line,) = [each for each in source.splitlines() if "if self.epochs.truncate_from_end(offset):" in each]
    mistake = {"id": "keeps", "module": "log/log.py", "function": "Log.truncate_to", "before": line + "\n"}
    after = line.replace("if ", "if not ") + "\n"
    (tmp_path / "some.jsonl").write_text(json.dumps({**mistake, "after": after, "harm": "It keeps epochs."}) + "\n")
    (made,) = mistakes_of(tmp_path / "some.jsonl")
    at = source.splitlines().index(line) + 1
    assert (made.key, made.room, made.lines) == ("keeps", "log", (at, at))
    assert mutated(made, source, "x") == compile(source.replace(line, after.rstrip()), "x", "exec")
    (tmp_path / "some.jsonl").write_text(json.dumps({**mistake, "before": "no such text", "after": ""}) + "\n")
    with pytest.raises(KeyError, match="keeps: its text is there 0 times"):
        mistakes_of(tmp_path / "some.jsonl")
