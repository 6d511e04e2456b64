from collections.abc import Callable

import pytest

from harness.system.chain import all_chained, has_link, is_writers_end, read_chain

FIVE = [b'{"n":%d}\n' % number for number in range(5)]


def written() -> list[bytes]:
    """Return five lines and the end of their writer."""
    return list(all_chained(FIVE))


def test_a_line_says_its_number_and_the_last_one_how_many_there_are() -> None:
    assert written()[0] == b'{"n":0,"line":0,"chain":"2f601f30"}\n'
    assert written()[-1].startswith(b'{"lines":5,"line":5,')
    assert list(all_chained([])) == []


def test_lines_that_follow_one_another_have_no_break() -> None:
    reading = read_chain(written())
    assert (reading.lines, reading.breaks, reading.ended) == (6, 0, True)


@pytest.mark.parametrize(
    ("lines", "ended"),
    [
        pytest.param(written()[:3], False, id="a writer that was killed"),
        pytest.param([*written()[:3], written()[3][:9]], False, id="a writer that was killed in a line"),
        pytest.param([*written()[:3], *written()], True, id="a second writer after one that was killed"),
        pytest.param([*written(), *written()], True, id="a second writer after one that ended"),
        pytest.param([], False, id="nothing was written"),
    ],
)
def test_a_writer_that_is_killed_breaks_no_chain(lines: list[bytes], ended: bool) -> None:
    reading = read_chain(lines)
    assert (reading.breaks, reading.ended) == (0, ended)


@pytest.mark.parametrize(
    ("damage", "first_break"),
    [
        pytest.param(
            lambda all_: all_[:2] + all_[3:], "line 3: numbers 2 to 2 are missing before it", id="one is missing"
        ),
        pytest.param(lambda all_: all_[1:], "line 1: numbers 0 to 0 are missing before it", id="the first is missing"),
        pytest.param(
            lambda all_: [*all_[:2], all_[1], *all_[2:]],
            "line 3: it has the number 1 where 2 is expected: a line is doubled or out of order",
            id="one is there twice",
        ),
        pytest.param(
            lambda all_: [all_[0], all_[2], all_[1], *all_[3:]],
            "line 2: numbers 1 to 1 are missing before it",
            id="swapped",
        ),
        pytest.param(
            lambda all_: [all_[0], all_[1].replace(b'"n":1', b'"n":7'), *all_[2:]],
            "line 2: it is changed, or follows another line than the one before",
            id="one is changed",
        ),
        pytest.param(
            lambda all_: [all_[0], all_[1][:-1] + all_[2], *all_[3:]],
            "line 2: numbers 1 to 1 are missing before it",
            id="two are joined",
        ),
        pytest.param(
            lambda all_: [all_[0], b"{}\n", *all_[2:]],
            "line 2: it is not a complete line with a number and a checksum",
            id="one is replaced",
        ),
    ],
)
def test_damage_is_told_by_its_line(damage: Callable[[list[bytes]], list[bytes]], first_break: str) -> None:
    reading = read_chain(damage(written()))
    assert reading.breaks
    assert reading.first_breaks[0] == first_break


def test_of_a_file_without_any_chain_the_first_breaks_are_told() -> None:
    reading = read_chain([b"{}\n"] * 1000)
    assert (reading.breaks, len(reading.first_breaks)) == (1000, 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"".join(written()), True, id="all lines"),
        pytest.param(b"{}\n" + written()[1], True, id="the first has none"),
        pytest.param(written()[0][:-1], True, id="no newline"),
        pytest.param(written()[0][:-1] + b"\r\n", True, id="another newline"),
        pytest.param(b"".join(FIVE), False, id="no chain"),
        pytest.param(b'{"inner":{"n":0,"line":0,"chain":"2f601f30"}}\n', False, id="fields of an object within"),
    ],
)
def test_text_with_a_chained_line_is_known(text: bytes, expected: bool) -> None:
    assert has_link(text) is expected


def test_the_end_of_a_writer_is_known() -> None:
    assert [is_writers_end(line[:-1]) for line in written()] == [False] * 5 + [True]


def test_a_writer_without_an_end_before_another_is_counted() -> None:
    assert read_chain([*written()[:3], *written()]).cut_short == 1
    assert read_chain([*written(), *written()]).cut_short == 0
