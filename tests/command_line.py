from typing import Any

import pytest

from harness.cli import app as cli


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs one command line; returns exit status, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["chaos", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    monkeypatch.setenv("COLUMNS", "160")
    return run
