"""The terminal's output: the progress of a run, and its outcome."""

import shlex
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from harness.contracts.registry import check_title
from harness.contracts.registry import fault as fault_plugin
from harness.judging.why import Kind, Reason, why
from harness.phases import Outcome
from harness.progress import number_of
from harness.report.answers import answers, left_out
from harness.report.live.watch import Watch
from harness.scenario.plan import Plan
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.store.result import CheckResult, FaultResult, ObjectiveResult, RunResult, SuiteResult
from harness.verdict import ExitCode, FaultVerdict, Mood, SystemVerdict, Verdict, Verdicts, mood_of

REFRESH_HZ = 2
"""Redraws of a terminal a second."""
EVERY_S = 10.0
"""Interval between two lines of progress without a terminal."""
SHOWN_CHARACTERS = 240
"""Characters of each detail, unless all is requested; `chaos why` and the report have the rest."""
GOOD, DOUBTFUL, BAD = "green", "yellow", "red"
STYLES = {Mood.GOOD: GOOD, Mood.OPEN: DOUBTFUL, Mood.BAD: BAD}
NEXT = {
    Phase.START: "starting the cluster",
    Phase.DRIVE: "load and faults",
    Phase.COLLECT: "collecting evidence",
    Phase.STOP: "stopping the cluster",
    Phase.JUDGE: "checks",
    Phase.EXPECTATIONS: "suites in Great Expectations",
    Phase.REPORT: "writing the report",
}


def new_table(title: str, *columns: str, wide: Sequence[str] = ()) -> Table:
    """Return a table without rows; the `wide` columns share the room that the others leave."""
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False, min_width=len(title))
    for name in columns:
        table.add_column(name, overflow="fold", ratio=1 if name in wide else None)
    return table


class TerminalProgress:
    """Lines of finished steps, and the current step: live on a terminal, occasional lines elsewhere."""

    def __init__(self, console: Console, watch: Watch | None = None) -> None:
        self._console = console
        self._watch = watch
        self._live: Live | None = None
        self._spinner = Spinner("dots")
        self._phase, self._step = "", ""
        self._phase_began_s = self._step_began_s = self._started_s = time.monotonic()
        self._over, self._telling = threading.Event(), threading.Lock()

    def phase_started(self, phase: str) -> None:
        """Show the started phase."""
        self._phase, self._phase_began_s = f"{phase}: {NEXT[Phase(phase)]}", time.monotonic()
        if self._console.is_terminal:
            self._go_live()
            return
        self._line(self._phase)
        if self._watch is not None and phase == Phase.DRIVE:
            self._over.clear()
            threading.Thread(target=self._tell, args=[self._watch], name="tell", daemon=True).start()

    def _now(self) -> RenderableType:
        """Return the live line."""
        now_s = time.monotonic()
        parts = ((self._phase, self._phase_began_s), (self._step, self._step_began_s))
        text = " · ".join(f"{what}, {now_s - began_s:.0f} s so far" for what, began_s in parts if what)
        self._spinner.update(text=Text(text))
        rows = self._watch.look().rows if self._watch is not None else []
        return Group(self._spinner, *(Text(f"  {about:<15} {words}") for about, words in rows))

    def _tell(self, watch: Watch) -> None:
        while not self._over.wait(EVERY_S):
            line = watch.look().line
            with self._telling:  # a phase may have ended since that look
                if line and not self._over.is_set():
                    self._line(f"  {line}")

    def doing(self, what: str) -> bool:
        """Show it while it lasts, on a terminal."""
        self._step, self._step_began_s = what, time.monotonic()
        if what and self._live is None and self._console.is_terminal:
            self._go_live()
        elif not what and not self._phase:
            self._stop_live()
        return self._live is not None

    def _go_live(self) -> None:
        self._live = Live(
            console=self._console, get_renderable=self._now, refresh_per_second=REFRESH_HZ, transient=True
        )
        self._live.start()

    def _stop_live(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def phase_finished(self, phase: str, duration_s: float, error: str) -> None:
        """Show the ended phase."""
        with self._telling:
            self._over.set()
        self._phase = ""
        self._stop_live()
        style, mark = (BAD, "failed") if error else (GOOD, "done")
        text = f"{phase} {mark} in {duration_s:.1f} s"
        self._line(f"{text}: {error}" if error else text, style=style)

    def message(self, text: str) -> None:
        """Show one line."""
        self._line(f"  {text}")

    def _line(self, text: str, style: str = "") -> None:
        since_s = time.monotonic() - self._started_s
        line = f"{since_s:6.1f} s  {text}"
        self._console.print(line, style=style, markup=False, highlight=False, soft_wrap=not self._console.is_terminal)


def show_outcome(
    console: Console, outcome: Outcome, commands: Sequence[tuple[str, str]], *, verbose: bool = False
) -> None:
    """Print a run's outcome, and the next commands."""
    show_result(console, outcome.result, verbose=verbose)
    for error in outcome.errors:
        if not any(str(error) in remark.text for remark in outcome.result.remarks):
            console.print(str(error), style=BAD, markup=False, highlight=False)
    for what, command in commands:
        console.print(f"[bold]{what:<8}[/bold]  {escape(command)}", highlight=False, soft_wrap=True)


def show_result(console: Console, result: RunResult, *, verbose: bool = False) -> None:
    """Print why a run did not hold, what is excused and what held (if `verbose`, each answer), and the verdicts."""
    checks, suites = answers(result.checks), answers(result.suites)
    reasons = why(result)
    if verbose:
        rows = [*map(_of_fault, result.faults), *map(_of_check, checks.all), *map(_of_suite, suites.all)]
        rows += [_of_reason(reason, result) for reason in reasons if reason.kind in (Kind.EVIDENCE, Kind.RESIDUE)]
    else:
        rows = [_of_reason(reason, result) for reason in reasons if reason.kind is not Kind.OBJECTIVE]
        rows += [_of_check(check) for check in checks.excused]
        rows += [_of_suite(suite) for suite in suites.excused]
    rows += map(_of_objective, result.objectives)
    brief = str if verbose else _brief
    table = new_table(result.run_id, "", "name", "verdict", "what was seen", wide=["what was seen"])
    for what, name, verdict, seen in rows:
        table.add_row(what, escape(name), styled(verdict), escape(brief(seen)))
    if rows:
        console.print(table)
    else:
        console.print(result.run_id, markup=False, highlight=False)
    if not verbose:
        confirmed = sum(each.verdict is FaultVerdict.CONFIRMED for each in result.faults)
        rest = [f"{number_of(confirmed, 'fault')} confirmed"] if confirmed else []
        rest += [sentence for sentence, _ in (*checks.folded("promise"), *suites.folded("suite"))]
        console.print(", ".join(rest) or "nothing was judged", markup=False, highlight=False)
    for remark in result.remarks:
        if not remark.forbids_pass:
            console.print(f"remark    {remark}", markup=False, highlight=False)
    if result.left_out:
        console.print(f"left out  {left_out(result)}", markup=False, highlight=False, soft_wrap=True)
    show_verdicts(console, result.verdicts)


Row = tuple[str, str, Verdict, str]
"""Kind, name, verdict and detail."""


def _of_reason(reason: Reason, result: RunResult) -> Row:
    """Return a reason why a run did not hold as a row; for a check with its counts."""
    counted = [each.counted for each in result.checks if reason.kind is Kind.CHECK and each.check == reason.subject]
    name = reason.subject if reason.kind is Kind.SUITE else reason.title
    return reason.kind, name, reason.verdict, "; ".join(filter(None, (*counted, reason.text)))


def _of_fault(fault: FaultResult) -> Row:
    return "fault", f"{fault.fault} {', '.join(fault.targets)}".strip(), fault.verdict, fault.detail


def _of_check(check: CheckResult) -> Row:
    return "check", check_title(check.check), check.verdict, "; ".join(filter(None, (check.counted, check.reason)))


def _of_suite(suite: SuiteResult) -> Row:
    unmet = [*suite.failures, *(f"expected: {sentence}" for sentence in suite.expected)]
    text = "; ".join(unmet) or suite.reason or number_of(suite.evaluated, "expectation")
    return "suite", suite.suite, suite.verdict, text


def _of_objective(objective: ObjectiveResult) -> Row:
    return "objective", objective.objective, objective.verdict, objective.seen


def _brief(text: str) -> str:
    """Return the start of a long text."""
    return textwrap.shorten(text, SHOWN_CHARACTERS, placeholder=" …") if len(text) > SHOWN_CHARACTERS else text


def show_verdicts(console: Console, verdicts: Verdicts) -> None:
    """Print the answers in a line."""
    shown: dict[str, Verdict | None] = {
        "fault": verdicts.fault,
        "system": verdicts.system,
        "environment": verdicts.environment,
        "objectives": verdicts.objectives,
    }
    words = [f"{about} {styled(verdict)}" for about, verdict in shown.items() if verdict is not None]
    console.print("   ".join(words), highlight=False)


def show_plan(console: Console, plan: Plan) -> None:
    """Print the plan: instants, targets, needed capabilities, clients."""
    title = f"{plan.scenario}, seed {plan.seed}"
    table = new_table(title, "at", "for", "fault", "target", "brokers", "needs")
    for fault in plan.faults:
        brokers = ", ".join(map(str, fault.brokers)) or "known at injection"
        needs = ", ".join(fault_plugin(fault.fault).requires) or "nothing special"
        at = "if one is missing" if fault.spare else f"{fault.at_s:g} s"
        if fault.after:
            at += f", then {fault.offset_s:g} s after {fault.after}"
        table.add_row(at, f"{fault.duration_s:g} s", fault.fault, fault.target, brokers, needs)
    console.print(table)
    for line in drawn_in(plan):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    if plan.left_out:
        faults = number_of(plan.left_out, "more fault")
        console.print(f"the mix states {faults}, for which there is no room", style=DOUBTFUL, highlight=False)
    console.print(f"clients: {', '.join(client.process for client in plan.clients)}", highlight=False)


def drawn_in(plan: Plan) -> list[str]:
    """Return what the seed drew beside faults, a line for each part of the scenario."""
    drawn = plan.drawn
    if drawn is None:
        return []
    sizes = [] if drawn.brokers is None else [f"brokers={drawn.brokers}"]
    sizes += [f"replicas of {topic}={factor}" for topic, factor in drawn.replication_factors.items()]
    parts = {
        "sizes": sizes,
        "brokers": _assigned(drawn.properties),
        **{f"topic {name}": _assigned(config) for name, config in drawn.topics.items()},
        **{f"workload {number}": _assigned(each) for number, each in enumerate(drawn.workloads, start=1)},
        "latencies": _assigned(drawn.latencies.model_dump(exclude_defaults=True)),
    }
    return [f"drawn, {part}: {', '.join(values)}" for part, values in parts.items() if values]


def _assigned(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items()]


def next_steps(folder: RunFolder, result: RunResult) -> list[tuple[str, str]]:
    """Return where to read on, and how to repeat the run."""
    root = shlex.quote(str(folder.root))
    steps = [("report", str(folder.report))] if folder.report.exists() else []
    if result.exit_code is not ExitCode.HELD:
        steps.append(("why", f"chaos why {root}"))
    if result.verdicts.system is SystemVerdict.FAIL:
        steps.append(("explain", f"chaos explain {root}"))
    return [*steps, ("seed", str(result.seed)), ("replay", f"chaos replay {root}")]


def styled(verdict: Verdict) -> str:
    """Return a verdict in its colour, as markup."""
    return f"[{STYLES[mood_of(verdict)]}]{verdict.name}[/]"
