"""Whether two revisions of this project behave alike: the same plans, the same simulated histories, the same verdicts.

    python -m tools.same_behaviour BEFORE [AFTER] [--seed 7 --seed 8] [--damaged 24] [--quick]

BEFORE and AFTER are revisions of git, AFTER by default the working tree. Both are asked through the command line alone,
so that modules may move, and compared by meaning, so that words may change:

- the plan of every built-in scenario and of that of every kept history, byte for byte;
- every file that a simulated run of each leaves, byte for byte, but for what LEFT_OUT names;
- what the judges say of evidence that both get: BEFORE's simulated runs, its kept histories, and runs of which one line
  was lost, doubled or changed: each verdict, and each check's numbers of findings by severity.

Ends 0 where all is equal and 1 where anything differs; `--quick` asks for a sample.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import parquet
from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).parent.parent
WORKING_TREE = "the working tree"
LEFT_OUT = {
    "phases.jsonl": "instants of this machine's clock, and its processes",
    "verdict.json": "how long phases took; verdicts are compared by themselves",
    "coverage.json": "made of the evidence",
    "facts": "made of the evidence, and compared as numbers of rows with the verdicts",
    "seal.json": "digests of the others, phases.jsonl among them",
    "tables": "made of the evidence; the run ends while they are",
}
"""What a simulated run leaves that is not compared, and why."""
JUDGED = (
    "scenario.yaml",
    "plan.json",
    "format.json",
    "journal.jsonl",
    "zookeeper.jsonl",
    "liveness.jsonl",
    "operations",
    "brokers",
    "replicas",
)
"""What of a run folder is judged."""
EVIDENCE = ("operations", "journal", "zookeeper", "replicas", "state_changes", "liveness")
"""Columns of a kept history: lines by their file."""
EXAMPLE = "docs/examples/lost-write"
LOOK_EVERY_S = 0.05
SHOWN = 60
"""Differences that are printed."""

Facts = dict[tuple[str, str, str], str]
"""What was seen, by kind, subject and item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One revision, checked out."""

    name: str
    tree: Path

    def chaos(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Return what a command came to."""
        with self.started(*arguments) as process:
            out, error = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, error)

    def started(self, *arguments: str) -> "subprocess.Popen[str]":
        """Return a command that runs."""
        path = os.pathsep.join(map(str, (self.tree, self.tree / "plugins")))
        command = [sys.executable, "-m", "harness", *arguments]
        environment = {**os.environ, "PYTHONPATH": path}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.tree, env=environment, stdout=pipe, stderr=pipe, text=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How much is compared."""

    seeds: tuple[int, ...]
    damaged: int
    quick: bool


@contextmanager
def checked_out(revision: str, scratch: Path) -> Iterator[Side]:
    """Give the tree of a revision, for as long as it is needed."""
    if revision == WORKING_TREE:
        yield Side(name=revision, tree=REPOSITORY)
        return
    git = ["git", "-C", str(REPOSITORY), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(scratch), revision], check=True)
    try:
        yield Side(name=revision, tree=scratch)
    finally:
        subprocess.run([*git, "remove", "--force", str(scratch)], check=True)


def scenarios(side: Side, histories: Path, *, quick: bool) -> dict[str, str]:
    """Return what to plan and simulate, as the command line takes it, by what it is called here."""
    built_in = [each["name"] for each in json.loads(side.chaos("list", "scenarios", "--json").stdout)]
    of_histories = {f"kept/{path.parent.name}": str(path) for path in sorted(histories.glob("*/scenario.yaml"))}
    return {name: name for name in built_in} | ({} if quick else of_histories)


def planned(side: Side, name: str, scenario: str, seed: int) -> Facts:
    """Return a plan's digest, or how it was refused."""
    done = side.chaos("plan", scenario, "--seed", str(seed), "--json")
    value = digest(done.stdout.encode()) if done.returncode == 0 else f"exit code {done.returncode}"
    return {("plan", name, f"seed {seed}"): value}


def simulated(side: Side, runs: Path, name: str, scenario: str, seed: int) -> Facts:
    """Return the digest of every file that a simulated run leaves; its evidence stays in a folder in `runs`.

    The run is ended when it has all its evidence, which its first, empty verdict says: it is judged with all others.
    """
    label = f"{name.replace('/', '-')}-{seed}"
    into = runs / label
    options = ("--driver", "simulated", "--seed", str(seed), "--runs", str(into))
    with side.started("run", scenario, *options) as process:
        while process.poll() is None and not list(into.glob("*/verdict.json")):
            time.sleep(LOOK_EVERY_S)
        process.kill()
    folders = list(into.glob("*/"))
    if not folders:
        return {("simulated run", label, "refused"): f"exit code {process.returncode}"}
    (folder,) = folders
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    places = ((path, path.relative_to(folder)) for path in files)
    return {
        ("simulated run", label, str(place)): digest(path.read_bytes())
        for path, place in places
        if place.parts[0] not in LEFT_OUT
    }


def digest(content: bytes) -> str:
    """Return a text that differs for different contents."""
    return f"{hashlib.sha256(content).hexdigest()[:16]}, {len(content)} bytes"


def simulated_evidence(runs: Path, into: Path) -> None:
    """Lay out the evidence of each simulated run for judging."""
    for folder in sorted(runs.glob("*/*/")):
        new = into / folder.parent.name
        new.mkdir(parents=True)
        for part in (folder / name for name in JUDGED):
            if part.is_dir():
                shutil.copytree(part, new / part.name)
            elif part.exists():
                shutil.copy(part, new / part.name)


def kept_evidence(side: Side, histories: Path, into: Path) -> None:
    """Lay out each kept history as the folder of a run."""
    for history in sorted(histories.glob("*/history.parquet")):
        folder = into / f"kept-{history.parent.name}"
        (row,) = parquet.read_table(history).to_pylist()
        scenario = history.with_name("scenario.yaml")
        for place, lines in (file for kind in EVIDENCE for file in row[kind] or ()):
            path = folder / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        shutil.copy(scenario, folder)
        plan = side.chaos("plan", str(scenario), "--seed", str(row["seed"]), "--json")
        (folder / "plan.json").write_text(plan.stdout, encoding="utf-8")


def damaged_evidence(whole: Path, into: Path, number: int) -> None:
    """Lay out copies of runs in which one line of one file was lost, doubled or changed."""
    choose = random.Random(number)
    folder = into / f"damaged-{number:03}"
    shutil.copytree(choose.choice(sorted(whole.iterdir())), folder)
    kinds = [sorted(folder.glob(f"{place}*/*.jsonl" if place == "replicas/" else place)) for place in LINES]
    path = choose.choice(choose.choice([each for each in kinds if each]))
    lines = path.read_text(encoding="utf-8").split("\n")
    at = choose.randrange(max(len(lines) - 1, 1))
    damage = choose.choice((lost, doubled, changed))
    path.write_text("\n".join([*lines[:at], *damage(lines[at], choose), *lines[at + 1 :]]), encoding="utf-8")


LINES = (
    "operations/*.jsonl",
    "journal.jsonl",
    "zookeeper.jsonl",
    "replicas/*/*.jsonl",
    "brokers/*/state-change*.jsonl",
)
"""Files of lines, by kind."""


def lost(_line: str, _choose: random.Random) -> list[str]:
    """Return nothing."""
    return []


def doubled(line: str, _choose: random.Random) -> list[str]:
    """Return the line twice."""
    return [line, line]


def changed(line: str, choose: random.Random) -> list[str]:
    """Return the line with one of its numbers raised by one."""
    content = json.loads(line)
    holders = list(with_numbers(content))
    if holders:
        holder, key = choose.choice(holders)
        holder[key] += 1
    return [json.dumps(content)]


def with_numbers(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a whole number: what holds it, and its key there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        if isinstance(each, int) and not isinstance(each, bool):
            yield value, key
        yield from with_numbers(each)


def judged(side: Side, folders: Path, *options: str) -> Facts:
    """Return what the judges say of runs."""
    copies = folders.with_name(f"{folders.name}-{side.name.replace('/', '-').replace(' ', '-')}")
    shutil.copytree(folders, copies)
    done = side.chaos("rejudge", *map(str, sorted(copies.iterdir())), "--json", *options)
    shutil.rmtree(copies)
    return answers(done, lambda answer: str(answer["run_id"]))


def example(side: Side, history: Path, scratch: Path) -> Facts:
    """Return what the judges say of the history that the documents show."""
    files = ("--operations", f"{history}/operations.jsonl", "--settings", f"{history}/settings.yaml")
    done = side.chaos("judge", *files, "--into", str(scratch / f"example-{side.tree.name}"), "--json")
    return answers(done, lambda _: EXAMPLE)


def answers(done: subprocess.CompletedProcess[str], subject: Callable[[dict[str, Any]], str]) -> Facts:
    """Return the meaning of what a command printed as JSON: one answer or several."""
    try:
        printed = json.loads(done.stdout)
    except ValueError:
        return {("verdict", "a command", "ends without an answer"): f"{done.returncode}: {done.stderr[-500:]}"}
    several = printed if isinstance(printed, list) else [printed]
    return {("verdict", subject(each), item): value for each in several for item, value in meaning(each)}


def meaning(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what an answer says, without its sentences and durations."""
    yield from ((name, str(verdict)) for name, verdict in answer.get("verdicts", {}).items())
    yield "exit code", str(answer.get("exit_code"))
    for fault in answer.get("faults", ()):
        yield f"fault {fault['injection']} {fault['fault']}", str(fault["verdict"])
    for check in answer.get("checks", ()):
        numbers = ", ".join(f"{check[severity]} {severity}" for severity in ("violations", "expected", "notes"))
        yield f"check {check['check'].split()[0]}", f"{check['verdict']}, {numbers}"
    for suite in answer.get("suites", ()):
        yield f"suite {suite['suite']}", f"{suite['verdict']}, {suite['unsuccessful']} of {suite['evaluated']} unmet"
    remarks = answer.get("evidence", answer.get("remarks", []))
    forbidding = any(each.get("forbids_pass") for each in remarks if isinstance(each, dict))
    yield "evidence forbids PASS", str(bool(answer.get("evidence_damaged")) or forbidding)
    yield from ((f"rows of {fact}", str(rows)) for fact, rows in answer.get("counts", {}).items())


def together(jobs: Iterable[Callable[[], Facts]]) -> Facts:
    """Return what all jobs saw; as many run at a time as this machine has processors."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return {key: value for facts in pool.map(lambda job: job(), jobs) for key, value in facts.items()}


def compared(before: Side, after: Side, sample: Sample, scratch: Path, console: Console) -> tuple[Facts, Facts]:
    """Return what was seen of each side."""
    began_s = time.monotonic()

    def done(what: str) -> None:
        console.print(f"{time.monotonic() - began_s:5.0f} s  {what}", highlight=False)

    kept_folder = next((before.tree / "tests").rglob("history.parquet")).parent.parent
    seen: list[Facts] = []
    for side in (before, after):
        to_plan = scenarios(side, kept_folder, quick=sample.quick)
        simulating = {"smoke": "smoke"} if sample.quick else to_plan
        runs = scratch / f"runs-{len(seen)}"
        plans = (partial(planned, side, *each, seed) for each in to_plan.items() for seed in sample.seeds)
        schedules = (
            partial(simulated, side, runs, *each, seed) for each in simulating.items() for seed in sample.seeds
        )
        seen.append(together((*plans, *schedules)))
        done(f"{side.name}: {len(to_plan)} scenarios planned, {len(simulating)} simulated, seeds {sample.seeds}")
    whole, histories = scratch / "whole", scratch / "kept"
    simulated_evidence(scratch / "runs-0", whole)
    if not sample.quick:
        kept_evidence(before, kept_folder, histories)
    for number in range(sample.damaged):
        damaged_evidence(whole, scratch / "damaged", number)
    shutil.copytree(scratch / "damaged", whole, dirs_exist_ok=True)
    done("evidence laid out")
    for facts, side in zip(seen, (before, after), strict=True):
        facts |= judged(side, whole, "--dry-run")
        if not sample.quick:
            facts |= judged(side, histories) | example(side, before.tree / EXAMPLE, scratch)
        done(f"{side.name}: judged")
    return seen[0], seen[1]


def show(before: Facts, after: Facts, console: Console) -> int:
    """Print what is equal and what differs; return the number of differences."""
    keys = sorted(before.keys() | after.keys())
    differing = [key for key in keys if before.get(key) != after.get(key)]
    table = Table("compared", "subjects", "equal", "different", title_justify="left", show_edge=False)
    for kind in dict.fromkeys(kind for kind, _, _ in keys):
        of_kind, different = ([key for key in each if key[0] == kind] for each in (keys, differing))
        subjects = len({subject for _, subject, _ in of_kind})
        table.add_row(kind, str(subjects), str(len(of_kind) - len(different)), str(len(different)))
    console.print(table)
    for name, why in LEFT_OUT.items():
        console.print(f"left out of simulated runs: {name} ({why})", highlight=False)
    if differing:
        table = Table("kind", "subject", "item", "before", "after", title="differences", show_edge=False)
        for key in differing[:SHOWN]:
            table.add_row(*key, before.get(key, "nothing"), after.get(key, "nothing"))
        console.print(table)
        console.print(f"{len(differing)} differences, {min(len(differing), SHOWN)} shown", highlight=False)
    return len(differing)


def main() -> None:
    """Compare, print, and end with 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=WORKING_TREE)
    parser.add_argument("--seed", type=int, action="append", help="of plans and simulated runs; repeatable")
    parser.add_argument("--damaged", type=int, help="runs with one line lost, doubled or changed")
    parser.add_argument("--quick", action="store_true", help="a sample of about a minute")
    options = parser.parse_args()
    seeds, damaged = ((7,), 3) if options.quick else ((7, 8), 24)
    sample = Sample(
        seeds=tuple(options.seed or seeds),
        damaged=damaged if options.damaged is None else options.damaged,
        quick=options.quick,
    )
    console = Console(width=None if sys.stdout.isatty() else 160)
    with (
        tempfile.TemporaryDirectory(prefix="same-behaviour-") as name,
        checked_out(options.before, Path(name, "before")) as before,
        checked_out(options.after, Path(name, "after")) as after,
    ):
        scratch = Path(name, "scratch")
        scratch.mkdir()
        seen = compared(before, after, sample, scratch, console)
    sys.exit(1 if show(*seen, console) else 0)


if __name__ == "__main__":
    main()
