from pathlib import Path

from harness.analysis.reference import PAGE, page

ROOT = Path(__file__).parents[2]


def test_the_page_of_checks_and_facts_is_what_the_code_says() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == page(), "make it anew: python -m harness.analysis.reference"


def test_every_check_has_a_test_file_of_its_name() -> None:
    checks = {path.stem for path in (ROOT / "plugins/kafka_chaos/checks").glob("*.py")} - {"__init__"}
    assert {f"test_{name}.py" for name in checks} <= {path.name for path in (ROOT / "tests/checks").glob("*.py")}
