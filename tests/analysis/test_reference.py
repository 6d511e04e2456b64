from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_check_has_a_test_file_of_its_name() -> None:
    checks = {path.stem for path in (ROOT / "plugins/kafka_chaos/checks").glob("*.py")} - {"__init__"}
    assert {f"test_{name}.py" for name in checks} <= {path.name for path in (ROOT / "tests/checks").glob("*.py")}
