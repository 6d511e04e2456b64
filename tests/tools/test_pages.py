"""The pages that are made from the code say what the code says."""

from pathlib import Path

import pytest

from tools.pages.__main__ import PAGES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_is_what_the_code_says(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == PAGES[path](), "make it anew: make pages"
