"""The lint of prose finds words that readers stumble over, in prose only."""

import pytest

from tools.prose.lint import problems, problems_of_python


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


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        pytest.param("a = 1  # nobody reads it", [1], id="a comment"),
        pytest.param('"""A module.\n\nWhoever asks gets it.\n"""', [3], id="a line of a docstring"),
        pytest.param('raise ValueError(f"{name} is somebody else\'s")', [1], id="a message"),
        pytest.param('nobody = "nobody"', [], id="names and keys"),
        pytest.param('"""Uses what it tells."""', [], id="a phrase that is forbidden in documents only"),
    ],
)
def test_phrases_in_python(text: str, lines: list[int]) -> None:
    assert [line for line, _ in problems_of_python(text)] == lines
