"""The lint of prose finds words that readers stumble over, in prose only."""

import pytest

from tools.prose.lint import problems


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("Whoever asks gets an answer.", [1], id="a program as a person"),
        pytest.param("One.\n\nThe broker goes by its clock.", [3], id="a phrase, with its line"),
        pytest.param("The broker uses its clock.", [], id="plain words"),
        pytest.param("Do not write `whoever`.", [], id="a quotation in backticks"),
        pytest.param("```\nnobody\n```\nIt is not unseen.", [4], id="a block of code is skipped, its lines count"),
        pytest.param("    chaos run nobody\n\nEach id is not unique.", [], id="an indented command; one negation"),
    ],
)
def test_phrases(text: str, lines: list[int]) -> None:
    assert [line for line, _ in problems(text)] == lines
