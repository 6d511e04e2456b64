"""Carries out the plan's fault schedule: intent into the journal first, then the act, its proof, and always the heal.

Each injection is a task of its own, so that a slow one delays no other. Whatever happens to it (its proof fails, the
plugin raises, the run is cancelled), every recorded fault is healed. An error of a plugin is the injection's answer,
INCONCLUSIVE; any other one, such as a journal that cannot be written, reaches the caller.

A fault whose target another one still holds is postponed before it is refused: until then it has disturbed nothing. So
is one of a mix whose role no broker has; a fault of a schedule is refused then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeVar

from harness.contracts import registry
from harness.contracts.claims import Claim, claim_of, in_the_way
from harness.contracts.faults import Effect, Fault, FaultContext, Injection, inconclusive
from harness.contracts.members import CLIENT
from harness.contracts.moments import MOMENTS, until_moment
from harness.contracts.targets import NO_BROKERS, resolve
from harness.contracts.zookeeper_servers import describe_servers, servers_of
from harness.errors import ClusterError, HarnessError, PluginError
from harness.progress import Progress
from harness.run.journal import STEP_OF, FaultLog, Journal, open_injections, readable_journal
from harness.scenario.model import POSTPONED_S
from harness.scenario.plan import PlannedFault
from harness.store.history import InjectionStep

INJECT_TIMEOUT_S = 180.0
CONFIRM_TIMEOUT_S = 120.0
HEAL_TIMEOUT_S = POSTPONED_S
"""For all tries together."""
HEAL_TRIES = 4
HEAL_PAUSE_S = 3.0
"""Between two tries: what keeps a broker from starting, such as a paused ZooKeeper server, passes."""
RETRY_S = 0.5
"""Between two checks of what is in the way; the end of a fault is a reason to check at once."""
LATE_S = 0.1
"""An injection that starts later than this records it in the journal."""

Until = Callable[[float, Effect], Awaitable[None]]
"""Receives when the healing of a fault is due, and its effect; returns when it is to be healed."""
T = TypeVar("T")


class Held(ClusterError):
    """Another fault is in force on the target."""


def _now_s() -> float:
    """Return the loop's time: the monotonic clock, or virtual time in a simulation."""
    return asyncio.get_running_loop().time()


async def bounded(call: Awaitable[T], limit_s: float) -> T:
    """Return the result of a plugin's call.

    Raises:
        HarnessError: any error in the plugin, as one type.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await call
    except HarnessError:
        raise
    except TimeoutError:
        raise PluginError(f"did not end within {limit_s:g} s") from None
    except Exception as error:
        raise PluginError(f"{type(error).__name__}: {error}") from error


@dataclass(slots=True, kw_only=True)
class Nemesis:
    """One schedule, carried out once."""

    context: FaultContext
    journal: FaultLog
    faults: Collection[PlannedFault]
    progress: Progress
    plugins: Mapping[str, Fault]
    """Of the faults, by name."""
    unhealed: list[Injection] = field(default_factory=list)
    """What could not be healed."""
    _in_force_claims: dict[int, Claim] = field(default_factory=dict)
    """By injection."""
    _waiting_claims: dict[int, Claim] = field(default_factory=dict)
    """Claims of postponed faults, in the order of their turns."""
    _ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a fault is over; replaced by the next one then."""
    _missing: int = 0
    """Faults of the mix that were refused or not seen, and are not replaced by a confirmed spare yet."""

    async def run(self) -> None:
        """Carry out every fault at its instant, counted from now; return when all are healed.

        For faults of a mix that were refused or not seen to happen, spares follow, as many as needed.
        A fault that failed in its own code gets no spare: the confirmation of another kind is no evidence about it.
        When cancelled, heals what is in force first; a second cancellation ends that too.
        """
        start_s = _now_s()
        tasks = [
            asyncio.create_task(self._at_its_instant(planned, start_s + planned.at_s))
            for planned in self.faults
            if not planned.spare
        ]
        try:
            await _all(tasks)
            for spare in (planned for planned in self.faults if planned.spare):
                if self._missing and not self.unhealed:
                    tasks = [asyncio.create_task(self._at_its_instant(spare, _now_s()))]
                    await _all(tasks)
        except asyncio.CancelledError:
            await _healed(tasks)
            raise

    async def _at_its_instant(self, planned: PlannedFault, due_s: float) -> None:
        await asyncio.sleep(max(0.0, due_s - _now_s()))
        waited = ""
        if planned.after:
            seen, waited = await self._moment(planned)
            planned = planned.model_copy(update={"overlaps": planned.overlaps and seen})
            due_s = _now_s()
        plugin = self.plugins[planned.fault]
        try:
            injection = await self._claimed_in_time(plugin, planned)
        except HarnessError as error:
            self._judge(planned, None, inconclusive(str(error)), error)
            return
        try:
            late_s = _now_s() - due_s
            late = f"{late_s:.2f} s late" if late_s > LATE_S else ""
            self._intend(planned, injection, "; ".join(filter(None, (waited, late))))
            await self._in_force(plugin, planned, injection, _its_duration)
        finally:
            del self._in_force_claims[planned.injection]
            self._ended.set()
            self._ended = asyncio.Event()

    async def _moment(self, planned: PlannedFault) -> tuple[bool, str]:
        """Wait for the instant of a fault; return whether it came, also as a sentence."""
        brokers = [broker.broker_id for broker in (await self.context.driver.status()).brokers]
        moment = MOMENTS[planned.after]
        seen = await until_moment(
            self.context.state_changes, brokers, moment, within_s=planned.within_s, offset_s=planned.offset_s
        )
        if seen:
            return True, f"{planned.offset_s:g} s after {planned.after}"
        return False, f"{planned.after} was not logged within {planned.within_s:g} s"

    async def hold(
        self, planned: PlannedFault, until: Until, injected: Callable[[Injection], None] = lambda _: None
    ) -> None:
        """Carry out one fault now, even if its targets are held, and heal it after `until`.

        `injected` receives the injection as soon as it is in force, before its effect is confirmed.
        """
        plugin = self.plugins[planned.fault]
        try:
            injection = await bounded(self._prepared(plugin, planned), INJECT_TIMEOUT_S)
        except HarnessError as error:
            self._judge(planned, None, inconclusive(str(error)), error)
            return
        self._intend(planned, injection, "")
        await self._in_force(plugin, planned, injection, until, injected)

    def _intend(self, planned: PlannedFault, injection: Injection, detail: str) -> None:
        self.journal.note(planned.injection, planned.fault, InjectionStep.INTENDED, injection=injection, detail=detail)

    async def _claimed_in_time(self, plugin: Fault, planned: PlannedFault) -> Injection:
        """Return the injection once its targets are known and free; they are resolved again at every look.

        Raises:
            HarnessError: its targets did not become free; or the plugin failed.
        """
        end_s = _now_s() + POSTPONED_S
        postponed = False
        try:
            while True:
                try:
                    return await bounded(self._claimed(plugin, planned), INJECT_TIMEOUT_S)
                except ClusterError as error:
                    if planned.beside is None and not isinstance(error, Held):
                        raise
                    if _now_s() + RETRY_S > end_s:
                        raise ClusterError(f"after {POSTPONED_S:g} s: {error}") from error
                    if not postponed:
                        self.journal.note(planned.injection, planned.fault, InjectionStep.POSTPONED, detail=str(error))
                        self.progress.message(f"{_described(planned, None)}: postponed, {error}")
                        postponed = True
                with suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S):
                        await self._ended.wait()
        finally:
            self._waiting_claims.pop(planned.injection, None)

    async def _claimed(self, plugin: Fault, planned: PlannedFault) -> Injection:
        """Return the injection with its targets resolved and claimed."""
        injection = await self._prepared(plugin, planned)
        claim = _claim(plugin, planned, injection.targets)
        self._require_free(planned, claim)
        self._in_force_claims[planned.injection] = claim
        return injection

    def _require_free(self, planned: PlannedFault, claim: Claim) -> None:
        """Check that a claim is free, and that no earlier waiter is to have it first.

        Raises:
            Held: it is not.
        """
        held = dict(self._in_force_claims)
        held |= takewhile(lambda item: item[0] != planned.injection, self._waiting_claims.items())
        if planned.overlaps:
            motif = {other.injection for other in self.faults if other.motif == planned.motif}
            held = {number: other for number, other in held.items() if number not in motif}
        if blocking := in_the_way(claim, held):
            self._waiting_claims[planned.injection] = claim
            named = ", ".join(f"{other} by injection {by}" for by, other in blocking.items())
            raise Held(f"refused, because another fault is in force: {named}")

    async def _prepared(self, plugin: Fault, planned: PlannedFault) -> Injection:
        """Return the injection with its targets resolved."""
        target = planned.parsed_target
        brokers = tuple(planned.brokers)
        if not brokers and target.role not in NO_BROKERS:
            brokers = await resolve(target, self.context.view)
        if not brokers and target.role not in NO_BROKERS:
            raise ClusterError(f"no broker is {target.described or target} now: nothing was injected")
        parameters = plugin.Parameters.model_validate(planned.parameters)
        return await plugin.prepare(self.context, target, brokers, parameters, duration_s=planned.duration_s)

    async def _in_force(
        self,
        plugin: Fault,
        planned: PlannedFault,
        injection: Injection,
        until: Until,
        injected: Callable[[Injection], None] = lambda _: None,
    ) -> None:
        effect, problem = inconclusive("interrupted before its effect was seen"), None
        judged = False
        try:
            injection = await bounded(plugin.inject(self.context, injection), INJECT_TIMEOUT_S)
            heal_due_s = _now_s() + planned.duration_s
            self.journal.note(planned.injection, planned.fault, InjectionStep.INJECTED, injection=injection)
            injected(injection)
            effect = await bounded(plugin.confirm(self.context, injection), CONFIRM_TIMEOUT_S)
            self._judge(planned, injection, effect)
            judged = True
            await until(heal_due_s, effect)
        except HarnessError as error:
            effect, problem = inconclusive(str(error)), error
        finally:
            try:
                if not judged:
                    self._judge(planned, injection, effect, problem)
            finally:  # heal even if the journal cannot be written
                if not await heal(plugin, self.context, self.journal, planned.injection, injection, self.progress):
                    self.unhealed.append(injection)

    def _judge(
        self, planned: PlannedFault, injection: Injection | None, effect: Effect, problem: HarnessError | None = None
    ) -> None:
        step = InjectionStep.FAILED if isinstance(problem, PluginError) else STEP_OF[effect.verdict]
        if planned.spare:
            self._missing -= step is InjectionStep.CONFIRMED
        elif planned.beside is not None:
            self._missing += step is InjectionStep.INCONCLUSIVE
        seen = injection.with_state(**effect.state) if injection and effect.state else injection
        self.journal.note(planned.injection, planned.fault, step, injection=seen, detail=effect.detail)
        self.progress.message(f"{_described(planned, injection)}: {step}, {effect.detail}")


def _claim(plugin: Fault, planned: PlannedFault, brokers: tuple[int, ...]) -> Claim:
    return claim_of(plugin, planned.parsed_target, brokers, planned.parameters, planned.beside)


async def _its_duration(heal_due_s: float, _effect: Effect) -> None:
    await asyncio.sleep(max(0.0, heal_due_s - _now_s()))


def _described(planned: PlannedFault, injection: Injection | None) -> str:
    role = planned.parsed_target.described
    if injection is None:
        return f"{planned.fault} {role or planned.target}"
    return brokers_hit(planned.fault, injection) + (f" ({role})" if role else "")


def brokers_hit(fault: str, injection: Injection) -> str:
    """Return the action and its targets, e.g. kill broker 2, or kill client w1-group-1-member-2."""
    if not injection.targets:
        if servers := servers_of(injection.state):
            return f"{fault}, {describe_servers(servers)}"
        return f"{fault} client {injection.state[CLIENT]}" if CLIENT in injection.state else fault
    plural = "s" if len(injection.targets) > 1 else ""
    return f"{fault} broker{plural} {', '.join(map(str, injection.targets))}"


async def heal(
    plugin: Fault, context: FaultContext, journal: FaultLog, number: int, injection: Injection, progress: Progress
) -> bool:
    """Undo one injection and record the outcome; return whether it is undone."""
    what = brokers_hit(injection.fault, injection)
    try:
        detail = await _undone(plugin, context, injection)
    except HarnessError as error:
        journal.note(number, injection.fault, InjectionStep.HEAL_FAILED, injection=injection, detail=str(error))
        progress.message(f"{what}: could not be healed, {error}")
        return False
    journal.note(number, injection.fault, InjectionStep.HEALED, injection=injection, detail=detail)
    progress.message(f"{what}: healed{detail and f', {detail}'}")
    return True


async def _undone(plugin: Fault, context: FaultContext, injection: Injection) -> str:
    """Undo one injection, retrying failures; return what was in the way, and what the fault says of its end.

    Raises:
        HarnessError: the error of the last try.
    """
    end_s = _now_s() + HEAL_TIMEOUT_S
    detail = ""
    for number in range(1, HEAL_TRIES + 1):
        try:
            said = await bounded(plugin.heal(context, injection), end_s - _now_s())
        except HarnessError as error:
            if number == HEAL_TRIES or _now_s() + HEAL_PAUSE_S >= end_s:
                raise
            detail = f"at try {number + 1}, after: {error}"
            await asyncio.sleep(HEAL_PAUSE_S)
        else:
            return "; ".join(filter(None, (detail, said)))
    return detail


async def heal_all(
    path: Path, context: FaultContext, progress: Progress, only: Callable[[Injection], bool] = lambda _: True
) -> list[str]:
    """Heal, from the journal alone, all that may still be in force; return a sentence for each failure."""
    failures = []
    remaining = [item for item in open_injections(readable_journal(path)[0]) if only(item.injection)]
    if not remaining:
        return []
    journal = Journal(path)
    try:
        for item in remaining:
            plugin = registry.fault(item.injection.fault)
            if not await heal(plugin, context, journal, item.number, item.injection, progress):
                failures.append(f"{brokers_hit(item.injection.fault, item.injection)} could not be healed")
    finally:
        journal.close()
    return failures


async def _healed(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel every task and wait while each heals what it has in force; if cancelled again, do not wait."""
    for task in tasks:
        task.cancel()
    try:
        await _all(tasks)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def _all(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait for every task, then raise the first error, if one failed."""
    pending = [task for task in tasks if not task.done()]
    if pending:
        await asyncio.wait(pending)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
