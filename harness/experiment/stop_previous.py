"""Ends a phase that another process still carries out, before the next one begins."""

import os
import signal
import socket
from collections.abc import Collection

from harness.errors import DeadlineError
from harness.progress import Progress
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase, PhaseEntry, entries
from harness.system.waiting import until

GOOD_ORDER_TIMEOUT_S = 15.0
"""For healing; a scheduler that ends the process waits about as long."""
GONE_TIMEOUT_S = 5.0


async def end_in_other_process(folder: RunFolder, phases: Collection[Phase], progress: Progress) -> None:
    """Ask a process that still carries out one of these phases of the run to end, and kill it if it does not.

    No-op if no other process of this machine does.

    Raises:
        DeadlineError: it survives SIGKILL.
    """
    if not (running := _in_another_process(folder, phases)):
        return
    (entry,) = running
    assert entry.process is not None, "a phase of another process names it"
    progress.message(f"process {entry.process.pid} still carries out the phase {entry.phase}, and receives SIGTERM")
    entry.process.send(signal.SIGTERM)
    try:
        await _over(folder, phases, GOOD_ORDER_TIMEOUT_S)
    except DeadlineError:
        progress.message(f"process {entry.process.pid} is killed")
        entry.process.send(signal.SIGKILL)
        await _over(folder, phases, GONE_TIMEOUT_S)


async def _over(folder: RunFolder, phases: Collection[Phase], timeout_s: float) -> None:
    async def running() -> list[PhaseEntry]:
        return _in_another_process(folder, phases)

    await until(running, lambda seen: not seen, what="end of the phase elsewhere", timeout_s=timeout_s)


def _in_another_process(folder: RunFolder, phases: Collection[Phase]) -> list[PhaseEntry]:
    """Return the latest entry of a phase, if it is one of these and another process here still carries it out."""
    return [
        entry
        for entry in entries(folder)[-1:]
        if entry.phase in phases
        and not entry.over
        and entry.host == socket.gethostname()
        and entry.process is not None
        and entry.process.pid != os.getpid()
        and entry.process.alive()
    ]
