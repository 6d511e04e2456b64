"""Runs the slow tests that failed once more, one after the other: `python -m tools.rerun`, after pytest has ended.

A test that failed beside others and passes alone depends on timing, order, or what tests share. It is named, and fails
no tier. All others do: a test that fails again or is skipped, a worker that died, and more than a few failures.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from junitparser import JUnitXml, Skipped

FAILED = Path(".pytest_cache/v/cache/lastfailed")
FIRST, AGAIN = Path("artifacts/test-all.xml"), Path("artifacts/test-all-alone.xml")
MOST = 5
"""More tests than that do not fail by chance."""
DIED = "crashed while running"
"""What pytest-xdist says of a worker that ended."""


def why_not(failed: Sequence[str], first: JUnitXml) -> str:
    """Return why the failed tests are not run again, in a sentence; empty if they are."""
    wrong = [
        (case, result) for suite in first for case in suite for result in case.result if not isinstance(result, Skipped)
    ]
    if any(DIED in f"{result.message or ''}{result.text or ''}" for _, result in wrong):
        return "A worker died."
    if not failed or not all("::" in test for test in failed):
        return "Not every failure is that of a test."
    reported = {(case.classname, case.name) for case, _ in wrong}
    if len(failed) != len(reported):
        return f"{len(reported)} failed tests are reported, and pytest remembers {len(failed)}."
    return f"{len(failed)} tests failed; at most {MOST} are run again." if len(failed) > MOST else ""


def main() -> int:
    """Return 0 if each failed test passes alone, else 1."""
    failed = sorted(json.loads(FAILED.read_text(encoding="utf-8"))) if FAILED.exists() else []
    if refusal := why_not(failed, JUnitXml.fromfile(str(FIRST))):
        print(f"No test is run again: {refusal}")
        return 1
    print("Failed tests run again, alone:", *failed, sep="\n  ", flush=True)
    command = [sys.executable, "-m", "pytest", "-v", "-m", "slow", f"--junitxml={AGAIN}", *failed]
    if subprocess.run(command, check=False).returncode:
        return 1
    again = JUnitXml.fromfile(str(AGAIN))
    if again.skipped or again.tests != len(failed):
        print(f"{again.tests - again.skipped} of {len(failed)} failed tests ran again.")
        return 1
    print(
        "Each failed test passes alone, so it depends on timing, order, or what tests share. Mend it:",
        *failed,
        sep="\n  ",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
