"""The scripts that a process plays one after the other, and how its answers differ from those that are recorded."""

import asyncio
import random
from collections.abc import Callable, Sequence

from harness.broker.wire.transport import PeerError
from harness.client_rules.scripts.comparing import difference
from harness.client_rules.scripts.recorded import Kind, Recorded, lines_of, recorded
from harness.client_rules.scripts.script import RESTART, Script
from harness.client_rules.scripts.target import LOOK_EVERY_S, Target
from harness.contracts.requests import error_codes
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder

PLAYS = 2
"""A difference counts if it is there again: a step may meet what an earlier one has begun and not finished.

A script with restarts is played once: no further restarts come for a second play.
"""
TIMED_OUT = 7
"""Kafka's number of REQUEST_TIMED_OUT."""


class Asking:
    """The plays of one process: every script once, in an order of its own.

    First one batch of scripts with restarts, then quick scripts, one after the other.
    """

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self._interval_s: float = plan.parameters["interval_s"]
        self._recorder = recorder
        self._left: list[tuple[Script, str]] = []
        """Scripts, with the prefixes of their names, that could not delete what they had made."""
        kind, at_once = Kind(plan.parameters["scripts"]), plan.parameters["at_once"]
        order = random.Random(plan.seed)  # noqa: S311  repeatable, not secret
        self._batches = _in_batches(_shuffled(kind, order), at_once)
        if kind is Kind.RESTARTS:
            self._batches = [*self._batches[:1], *_in_batches(_shuffled(Kind.QUICK, order), 1)]

    async def run(self, target: Target, stopped: Callable[[], bool]) -> None:
        """Play some scripts at once, and then the next, until `stopped`."""
        first = self._recorder.invoke(OpKind.ASK, mode="warm-up")
        await target.warm_up()
        self._recorder.end(first, OpType.OK)  # the load runs, though scripts with restarts end late
        for batch in self._batches:
            while not stopped() and not await target.stands():
                await self._begin_again(target)
            if stopped():
                return
            await asyncio.gather(*(self._play(target, recorded(line), stopped) for line in batch))
            await asyncio.sleep(self._interval_s)

    async def _begin_again(self, target: Target) -> None:
        """Go on with a broker that has ended: once it serves, what scripts have left is deleted."""
        try:
            await target.watch()
            await target.warm_up()
            while self._left:
                await target.clean_up(*self._left[-1])
                self._left.pop()
        except PeerError:
            await asyncio.sleep(LOOK_EVERY_S)

    async def _play(self, target: Target, script: Recorded, stopped: Callable[[], bool]) -> None:
        invoked = self._recorder.invoke(OpKind.ASK, mode=script.about)
        found, prefix = None, ""
        try:
            restarts = any(step.how == RESTART for step in script.script)
            for play in range(1 if restarts else PLAYS):
                prefix = f"{invoked.process}-{invoked.index}-{play}-"
                answers = await target.play(script.script, prefix, stopped)
                found = difference(script.script, answers, script.answers)
                if found is None:
                    break
                if restarts and isinstance(found.ours, str):
                    raise PeerError(f"the broker ended during step {found.at + 1}: {found.ours}")
                if restarts and TIMED_OUT in error_codes(found.ours):
                    raise PeerError(f"the broker was too slow in step {found.at + 1}")
                if not restarts and not await target.stands():
                    raise PeerError("the broker ended during the script")
        except PeerError as error:
            self._left.append((script.script, prefix))
            self._recorder.end(invoked, OpType.INFO, error=str(error))
        else:
            text = "" if found is None else f"step {found.at + 1}, version {found.step.version}: {found.signature}"
            self._recorder.end(invoked, OpType.OK, error=text)


def _shuffled(kind: Kind, order: random.Random) -> list[bytes]:
    lines = list(lines_of(kind))
    order.shuffle(lines)
    return lines


def _in_batches(lines: Sequence[bytes], size: int) -> list[Sequence[bytes]]:
    return [lines[at : at + size] for at in range(0, len(lines), size)]
