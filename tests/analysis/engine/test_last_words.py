"""What is said of a JVM that has ended, from the end of its log."""

from pathlib import Path

import pytest

from harness.analysis.engine.jvm import MORE_MEMORY, last_words

TASKS = (
    "spark: ERROR Executor: Executor launch task task {0}.0 in stage 10.0 failed, reason: Task TaskRunner@4415e{0}\n"
)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        pytest.param("", "the end of its log: nothing", id="nothing"),
        pytest.param(
            "BindException: in use\n\tat a.B.c(B.java:1)\n\t... 20 more\n",
            "the end of its log: BindException: in use",
            id="what",
        ),
        pytest.param(
            "one\ntwo\nthree\nfour\nfive\nsix\n",
            "the end of its log: two | three | four | five | six",
            id="the last five",
        ),
        pytest.param(
            "it began\n" + "".join(map(TASKS.format, range(40))),
            "the end of its log: it began | " + TASKS.format(0).strip(),
            id="what each task says, once",
        ),
        pytest.param(
            "Exception in task 1.0 java.lang.OutOfMemoryError: Java heap space\n" + TASKS.format(1) * 9,
            f"it was out of memory, {MORE_MEMORY}; the end of its log: "
            f"Exception in task 1.0 java.lang.OutOfMemoryError: Java heap space | {TASKS.format(1).strip()}",
            id="out of memory is said first, and what helps",
        ),
        pytest.param(
            "java.lang.OutOfMemoryError: Java heap space\na\nb\nc\nd\ne\n",
            "the end of its log: a | b | c | d | e",
            id="it was out of memory before, and went on",
        ),
    ],
)
def test_the_last_words_of_a_log(tmp_path: Path, log: str, words: str) -> None:
    path = tmp_path / "jvm.log"
    path.write_text(log)
    assert last_words(path) == words


def test_a_log_that_is_gone_said_nothing(tmp_path: Path) -> None:
    assert last_words(tmp_path / "jvm.log") == "the end of its log: nothing"
