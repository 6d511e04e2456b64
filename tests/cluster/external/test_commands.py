"""What a command of the user's may be, and how it is carried out."""

import os
import signal
import sys
from pathlib import Path

import pytest

from harness.cluster.external.commands import carry_out, filled, problem_of
from harness.cluster.supervision.supervision import CLUSTER_VARIABLE
from harness.errors import ClusterError, DeadlineError

VALUES = {"host": "a; rm -rf x", "name": "kafka 1", "id": "1", "into": "/in/to"}


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        pytest.param("ssh {host} systemctl kill -s KILL kafka", "", id="words and a host"),
        pytest.param("cp -r /data/{id}/. {into}/", "", id="more than a placeholder in a word"),
        pytest.param("  ", "says nothing", id="no words"),
        pytest.param("ssh 'a", "cannot be split into words: No closing quotation", id="a quote without its end"),
        pytest.param(
            "kill {pid}", "unknown {pid}; known: {host}, {name}, {id}, {into}, {prefix}", id="an unknown placeholder"
        ),
        pytest.param("kill {", "cannot be split into words: ", id="a brace without its end"),
        pytest.param("kill {}", "unknown {}; known: ", id="a placeholder without a name"),
        pytest.param("kill {id.real}", "unknown {id.real}; known: ", id="a part of a value"),
        pytest.param("kill {name!z}", "unknown {name!z}; known: ", id="a conversion that there is not"),
        pytest.param("kill {name!r}", "unknown {name!r}; known: ", id="a conversion"),
        pytest.param("kill {id:>5d}", "unknown {id:>5d}; known: ", id="a format"),
        pytest.param("kill {name:{bad}}", "unknown {name:{bad}}; known: ", id="a placeholder in a format"),
    ],
)
def test_what_cannot_be_a_command_is_told(template: str, problem: str) -> None:
    assert problem_of(template).startswith(problem)
    assert bool(problem_of(template)) == bool(problem)
    if problem:
        with pytest.raises(ClusterError):
            filled(template, VALUES)


@pytest.mark.parametrize(
    ("template", "argv"),
    [
        pytest.param("ssh {host} x", ["ssh", "a; rm -rf x", "x"], id="a value is one word, whatever is in it"),
        pytest.param("ssh 'kill {name}'", ["ssh", "kill kafka 1"], id="or a part of a quoted one"),
        pytest.param("cp {id}.data {into}/", ["cp", "1.data", "/in/to/"], id="or of a plain one"),
        pytest.param("echo {{id}} $HOME *", ["echo", "{id}", "$HOME", "*"], id="no shell makes anything of it"),
        pytest.param("x '{{{{.State}}}}'", ["x", "{{.State}}"], id="two braces are written as four"),
    ],
)
def test_a_value_never_becomes_more_than_a_part_of_a_word(template: str, argv: list[str]) -> None:
    assert problem_of(template) == ""
    assert filled(template, VALUES) == argv


@pytest.mark.parametrize(
    ("argv", "error", "text"),
    [
        pytest.param(["/nowhere/ssh"], ClusterError, "kill cannot be carried out: /nowhere/ssh: No such", id="absent"),
        pytest.param(
            ["sh", "-c", "echo who >&2; echo secret; exit 3"],
            ClusterError,
            "kill ended with status 3: who$",
            id="fails",
        ),
        pytest.param(["false"], ClusterError, "kill ended with status 1$", id="fails without a word"),
        pytest.param(
            ["sleep", "60"], DeadlineError, r"kill did not end within 0\.2 s, and was killed$", id="does not end"
        ),
    ],
)
def test_what_goes_wrong_is_told_without_the_words_of_the_command(
    argv: list[str], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        carry_out(argv, "kill", 0.2 if argv[0] == "sleep" else 60)


def test_what_a_command_starts_is_nobodys_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CLUSTER_VARIABLE, str(tmp_path))
    program = (
        "import os, pathlib, signal, sys\n"
        f"seen = [os.environ.get({CLUSTER_VARIABLE!r}), list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),"
        " os.getsid(0) == os.getpid(), os.getcwd()]\n"
        "pathlib.Path(sys.argv[1]).write_text(repr(seen))"
    )
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        carry_out([sys.executable, "-c", program, str(tmp_path / "seen")], "start", 60)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert (tmp_path / "seen").read_text() == repr([None, [], True, os.sep])
