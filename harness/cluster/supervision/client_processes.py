"""How do clients run within a run: as children of its cluster's supervisor, with which they end?"""

from pathlib import Path

from harness.cluster.layout import client_process
from harness.cluster.supervision.supervision import BROKER_STAGE, GONE_TIMEOUT_S, Supervision
from harness.errors import DeadlineError
from harness.system.process_state import ProcessState


class RunsClients:
    """Implements CanRunClients and CanDisturbClients for a driver with a supervisor."""

    _supervision: Supervision

    async def start_client(self, process: str, argv: list[str], log: Path) -> None:
        """Start a client process under the name `process`."""
        await self._supervision.spawn(client_process(process), argv, log, BROKER_STAGE)

    async def stop_client(self, process: str, *, timeout_s: float, at_once: bool = False) -> int | None:
        """Send SIGTERM, or SIGUSR1 to have it end at once; wait, and return the exit status.

        SIGKILL after the time-out (then None). A client that ended before keeps its exit status.
        """
        name = client_process(process)
        answer = await self._supervision.ended(name, 0)
        if not answer["exited"]:
            await self._supervision.call("signal", name=name, signal="USR1" if at_once else "TERM")
            answer = await self._supervision.ended(name, timeout_s)
        if answer["exited"]:
            return int(answer["status"])
        await self._supervision.call("signal", name=name, signal="KILL")
        if not (await self._supervision.ended(name, GONE_TIMEOUT_S))["exited"]:
            raise DeadlineError(f"{name} still runs {GONE_TIMEOUT_S:g} s after SIGKILL")
        return None

    async def client_state(self, process: str) -> ProcessState:
        """Return running, paused or stopped."""
        processes = (await self._supervision.call("status"))["processes"]
        return ProcessState(processes.get(client_process(process), {}).get("state", ProcessState.STOPPED))

    async def kill_client(self, process: str) -> None:
        """End a client at once (SIGKILL) and return when it is gone; it can be started again."""
        name = client_process(process)
        await self._supervision.call("signal", name=name, signal="KILL")
        if not (await self._supervision.ended(name, GONE_TIMEOUT_S))["exited"]:
            raise DeadlineError(f"{name} still runs {GONE_TIMEOUT_S:g} s after SIGKILL")

    async def pause_client(self, process: str, *, at_most_s: float) -> None:
        """Freeze a client (SIGSTOP); the supervisor resumes it after `at_most_s`, even when the caller has died."""
        await self._supervision.call("pause", name=client_process(process), at_most_s=at_most_s)

    async def resume_client(self, process: str) -> None:
        """Thaw a client (SIGCONT); nothing happens when it runs."""
        await self._supervision.call("resume", name=client_process(process))
