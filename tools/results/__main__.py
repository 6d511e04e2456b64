"""Append what runs, sweeps and tests came to: `python -m tools.results campaign|bug|tests …`, then `make pages`.

campaign FOLDER…   one row about these runs of one scenario, or about one sweep
bug ID RUN…        counts runs that were to show a known bug, and dates the last one that did
tests FILE.xml     seconds of `make test` or `make test-all`, by the file's name
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from junitparser import JUnitXml

from harness.errors import EvidenceError
from harness.store.folder import RunFolder
from harness.store.result import RunResult
from harness.sweep.summary import load_summary
from harness.sweep.sweep import SUMMARY
from harness.verdict import ExitCode, FaultVerdict, SystemVerdict
from tools.results.rows import BUGS, CAMPAIGNS, RESULTS, Row, append, circumstances, load, record, save

SECONDS = {"test": "tests.quick_s", "test-all": "tests.rest_s"}
"""Figures by the names of JUnit files."""


def campaign(folders: Sequence[Path], note: str, results: Path = RESULTS) -> Row:
    """Append and return a row about runs of one scenario, or about one sweep."""
    row = _of_sweep(folders[0]) if (folders[0] / SUMMARY).exists() else _of_runs(folders)
    row = {**circumstances(), **row, **({"note": note} if note else {})}
    append(CAMPAIGNS, row, results)
    return row


def _of_sweep(folder: Path) -> Row:
    summary = load_summary(folder / SUMMARY)
    counts = {"held": summary.held, "inconclusive": summary.inconclusive, "violated": summary.violated}
    return {
        "kind": "sweep",
        "scenario": summary.scenario,
        "seeds": str(summary.seed),
        "count": summary.schedules,
        **counts,
    }


def _of_runs(folders: Sequence[Path]) -> Row:
    results = [RunResult.load(RunFolder(folder).verdict) for folder in folders]
    scenarios = {(each.scenario, each.system, each.driver) for each in results}
    if len(scenarios) > 1:
        raise EvidenceError(f"one campaign is one scenario on one system and driver, not {sorted(scenarios)}")
    ((scenario, system, driver),) = scenarios
    codes = Counter(each.verdicts.exit_code for each in results)
    faults = [fault for each in results for fault in each.faults]
    return {
        "kind": "runs",
        "scenario": scenario,
        "system": system,
        "driver": driver,
        "seeds": ", ".join(str(each.seed) for each in results),
        "count": len(results),
        "held": codes[ExitCode.HELD],
        "inconclusive": len(results) - codes[ExitCode.HELD] - codes[ExitCode.VIOLATED],
        "violated": codes[ExitCode.VIOLATED],
        "faults": len(faults),
        "confirmed": sum(fault.verdict is FaultVerdict.CONFIRMED for fault in faults),
        "checks": sum(check.verdict in (SystemVerdict.PASS, SystemVerdict.FAIL) for check in results[0].checks),
    }


def bug(name: str, folders: Sequence[Path], results: Path = RESULTS) -> Row:
    """Count runs that were to show a known bug, and return its row."""
    rows = load(BUGS, results)
    row = next((row for row in rows if row["id"] == name), None)
    if row is None:
        raise EvidenceError(f"{name}: results/bugs.json has no such bug; it has {', '.join(row['id'] for row in rows)}")
    shown = [_shows(row, RunResult.load(RunFolder(folder).verdict)) for folder in folders]
    row["found"] += sum(shown)
    row["of"] += len(shown)
    if any(shown):
        row["last_confirmed"] = circumstances()["date"]
    save(BUGS, rows, results)
    return row


def _shows(row: Row, result: RunResult) -> bool:
    failed = {check.check for check in result.checks if check.verdict is SystemVerdict.FAIL}
    return not failed.isdisjoint(name.partition(" ")[0] for name in row["found_by"])


def seconds_of(file: Path, results: Path = RESULTS) -> None:
    """Append the seconds of one tier of tests; its JUnit file says how long it took."""
    suites = JUnitXml.fromfile(str(file))
    seconds = sum(float(suite.time or 0) for suite in suites)
    record(f"make {file.stem}", {SECONDS[file.stem]: seconds}, folder=results)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.results", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    of_campaign = commands.add_parser("campaign")
    of_campaign.add_argument("folders", nargs="+", type=Path)
    of_campaign.add_argument("--note", default="")
    of_bug = commands.add_parser("bug")
    of_bug.add_argument("id")
    of_bug.add_argument("folders", nargs="+", type=Path)
    of_tests = commands.add_parser("tests")
    of_tests.add_argument("file", type=Path)
    options = parser.parse_args()
    try:
        match options.command:
            case "campaign":
                print(campaign(options.folders, options.note))
            case "bug":
                print(bug(options.id, options.folders))
            case _:
                seconds_of(options.file)
    except EvidenceError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
