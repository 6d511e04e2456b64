"""Ends a phase that another process still carries out, before the next one begins."""

import os
import signal
import socket

from harness.errors import DeadlineError
from harness.progress import Progress
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseEntry, entries
from harness.system.waiting import until

GOOD_ORDER_TIMEOUT_S = 15.0
"""For healing; a scheduler that ends the process too is not more patient."""
GONE_TIMEOUT_S = 5.0


async def end_in_other_process(folder: RunFolder, phase: Phase, progress: Progress) -> None:
    """Ask the process that carries out this phase of the run to end it, and kill it if it does not.

    Nothing happens when no other process of this machine does.

    Raises:
        DeadlineError: it survives SIGKILL.
    """
    if not (running := _in_another_process(folder, phase)):
        return
    (entry,) = running
    assert entry.process is not None, "a phase of another process names it"
    progress.message(f"process {entry.process.pid} still carries out the phase {phase}: it is asked to end it")
    entry.process.send(signal.SIGTERM)
    try:
        await _over(folder, phase, GOOD_ORDER_TIMEOUT_S)
    except DeadlineError:
        progress.message(f"process {entry.process.pid} is killed")
        entry.process.send(signal.SIGKILL)
        await _over(folder, phase, GONE_TIMEOUT_S)


async def _over(folder: RunFolder, phase: Phase, timeout_s: float) -> None:
    async def running() -> list[PhaseEntry]:
        return _in_another_process(folder, phase)

    await until(running, lambda seen: not seen, what=f"end of the phase {phase} elsewhere", timeout_s=timeout_s)


def _in_another_process(folder: RunFolder, phase: Phase) -> list[PhaseEntry]:
    """Return the last time the phase was entered, if another process of this machine still carries it out."""
    return [
        entry
        for entry in entries(folder)[-1:]
        if entry.phase is phase
        and not entry.over
        and entry.host == socket.gethostname()
        and entry.process is not None
        and entry.process.pid != os.getpid()
        and entry.process.alive()
    ]
