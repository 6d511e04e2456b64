"""The page of which fault works where."""

from harness.scenario.faults_page import PAGE, page


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "python -m harness.scenario.faults_page"
