"""The scripts that a process plays one after the other, and how its answers differ from those that are recorded."""

import asyncio
import random
from collections.abc import Callable

from harness.broker.wire.transport import PeerError
from harness.client_rules.scripts.comparing import difference
from harness.client_rules.scripts.recorded import Kind, Recorded, lines_of, recorded
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder

PLAYS = 2
"""A difference counts if it is there again: a step may meet what an earlier one has begun and not finished."""


class Asking:
    """The plays of one process: every script once, in an order of its own."""

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self._interval_s: float = plan.parameters["interval_s"]
        lines = list(lines_of(Kind(plan.parameters["scripts"])))
        random.Random(plan.seed).shuffle(lines)  # noqa: S311  repeatable, not secret
        self._lines = lines
        self._recorder = recorder

    async def run(self, target: Target, stopped: Callable[[], bool]) -> None:
        """Play one script after the other until `stopped`."""
        await target.warm_up()
        for line in self._lines:
            if stopped():
                return
            await self._play(target, recorded(line))
            await asyncio.sleep(self._interval_s)

    async def _play(self, target: Target, script: Recorded) -> None:
        invoked = self._recorder.invoke(OpKind.ASK, mode=script.about)
        found = None
        try:
            for play in range(PLAYS):
                answers = await target.play(script.script, f"{invoked.process}-{invoked.index}-{play}-")
                found = difference(script.script, answers, script.answers)
                if found is None:
                    break
        except PeerError as error:
            self._recorder.end(invoked, OpType.INFO, error=str(error))
        else:
            text = "" if found is None else f"step {found.at + 1}, version {found.step.version}: {found.signature}"
            self._recorder.end(invoked, OpType.OK, error=text)
