"""The scripts that a process plays one after the other, and how its answers differ from those that are recorded."""

import asyncio
import random
from collections.abc import Callable
from itertools import islice

from harness.broker.wire.transport import PeerError
from harness.client_rules.scripts.comparing import difference
from harness.client_rules.scripts.recorded import Kind, Recorded, lines_of, recorded
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder

PLAYS = 2
"""A difference counts if it is there again: a step may meet what an earlier one has begun and not finished.

A script with restarts is played once, as the broker does not end a second time for it.
"""


class Asking:
    """The plays of one process: every script once, in an order of its own."""

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self._interval_s: float = plan.parameters["interval_s"]
        self._at_once: int = plan.parameters["at_once"]
        self._kind = Kind(plan.parameters["scripts"])
        lines = list(lines_of(self._kind))
        random.Random(plan.seed).shuffle(lines)  # noqa: S311  repeatable, not secret
        self._lines = lines
        self._recorder = recorder

    async def run(self, target: Target, stopped: Callable[[], bool]) -> None:
        """Play some scripts at once, and then the next, until `stopped`."""
        await target.warm_up()
        left = map(recorded, self._lines)
        while not stopped() and (scripts := list(islice(left, self._at_once))):
            await asyncio.gather(*(self._play(target, script, stopped) for script in scripts))
            await asyncio.sleep(self._interval_s)

    async def _play(self, target: Target, script: Recorded, stopped: Callable[[], bool]) -> None:
        invoked = self._recorder.invoke(OpKind.ASK, mode=script.about)
        found = None
        try:
            for play in range(1 if self._kind is Kind.RESTARTS else PLAYS):
                answers = await target.play(script.script, f"{invoked.process}-{invoked.index}-{play}-", stopped)
                found = difference(script.script, answers, script.answers)
                if found is None:
                    break
                if self._kind is Kind.RESTARTS and isinstance(found.ours, str):
                    raise PeerError(f"the broker ended during step {found.at + 1}: {found.ours}")
        except PeerError as error:
            self._recorder.end(invoked, OpType.INFO, error=str(error))
        else:
            text = "" if found is None else f"step {found.at + 1}, version {found.step.version}: {found.signature}"
            self._recorder.end(invoked, OpType.OK, error=text)
