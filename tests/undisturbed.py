"""Clients to which no fault is done."""

from harness.system.process_state import ProcessState


class Undisturbed:
    """What faults could do to clients, refused."""

    async def state(self, process: str) -> ProcessState:
        raise AssertionError(f"unexpected look at {process}")

    async def kill(self, process: str) -> None:
        raise AssertionError(f"unexpected kill of {process}")

    async def pause(self, process: str, *, at_most_s: float) -> None:
        raise AssertionError(f"unexpected pause of {process} for {at_most_s} s")

    async def resume(self, process: str) -> None:
        raise AssertionError(f"unexpected resume of {process}")
