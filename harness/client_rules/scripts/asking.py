"""The scripts that a process plays one after the other, and how its answers differ from those that are recorded."""

import asyncio
import random
from collections.abc import Callable, Sequence

from harness.broker.wire.transport import PeerError
from harness.client_rules.scripts.comparing import difference
from harness.client_rules.scripts.recorded import Kind, Recorded, lines_of, recorded
from harness.client_rules.scripts.script import RESTART
from harness.client_rules.scripts.target import Target
from harness.contracts.workloads import ClientPlan
from harness.store.history import OpKind, OpType
from harness.store.recording import Recorder

PLAYS = 2
"""A difference counts if it is there again: a step may meet what an earlier one has begun and not finished.

A script with restarts is played once, as the broker does not end a second time for it.
"""


class Asking:
    """The plays of one process: every script once, in an order of its own.

    Of the scripts with restarts as many as are played at once; then those without, one after the other.
    """

    def __init__(self, plan: ClientPlan, recorder: Recorder) -> None:
        self._interval_s: float = plan.parameters["interval_s"]
        self._recorder = recorder
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
            if stopped():
                return
            await asyncio.gather(*(self._play(target, recorded(line), stopped) for line in batch))
            await asyncio.sleep(self._interval_s)

    async def _play(self, target: Target, script: Recorded, stopped: Callable[[], bool]) -> None:
        invoked = self._recorder.invoke(OpKind.ASK, mode=script.about)
        found = None
        try:
            restarts = any(step.how == RESTART for step in script.script)
            for play in range(1 if restarts else PLAYS):
                answers = await target.play(script.script, f"{invoked.process}-{invoked.index}-{play}-", stopped)
                found = difference(script.script, answers, script.answers)
                if found is None:
                    break
                if restarts and isinstance(found.ours, str):
                    raise PeerError(f"the broker ended during step {found.at + 1}: {found.ours}")
        except PeerError as error:
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
