import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.experiment.stop_previous import end_in_other_process
from harness.progress import Silent
from harness.store.folder import RunFolder
from harness.store.phase_log import GATHERING, Phase, ends, record_phase

pytestmark = pytest.mark.real_time("another process is waited for")

PROGRAM = """
import asyncio, sys
from pathlib import Path
from harness.system.interruption import Interrupts
from harness.store.phase_log import Phase, record_phase
from harness.progress import Silent
from harness.store.folder import RunFolder

async def endless():
    print("running", flush=True)
    await asyncio.sleep(600)

async def stubborn():
    while True:
        try:
            await endless()
        except asyncio.CancelledError:
            pass

with Interrupts() as interrupts, record_phase(RunFolder(Path(sys.argv[1])), Phase(sys.argv[3]), Silent()):
    interrupts.run({"obeys": endless, "does not": stubborn}[sys.argv[2]]())
"""


@pytest.mark.parametrize(
    ("phase", "manner", "error"),
    [
        pytest.param(Phase.DRIVE, "obeys", "interrupted", id="it ends in good order"),
        pytest.param(Phase.DRIVE, "does not", "the phase drive was cut off", id="it is killed"),
        pytest.param(Phase.COLLECT, "obeys", "interrupted", id="an earlier try of collect is ended too"),
    ],
)
def test_a_phase_that_another_process_carries_out_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: Phase, manner: str, error: str
) -> None:
    monkeypatch.setattr("harness.experiment.stop_previous.GOOD_ORDER_TIMEOUT_S", 120.0 if manner == "obeys" else 0.2)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), manner, phase]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"running\n"
        asyncio.run(end_in_other_process(RunFolder(tmp_path), GATHERING, Silent()))
        assert ends(RunFolder(tmp_path))[phase].error == error
        status = other.wait(120)
    assert (status == -signal.SIGKILL) is (manner == "does not")


def test_a_phase_that_is_over_or_ones_own_is_let_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(os, "kill", lambda _pid, number: sent.append(number))
    folder = RunFolder(tmp_path)
    asyncio.run(end_in_other_process(folder, GATHERING, Silent()))
    with record_phase(folder, Phase.DRIVE, Silent()):
        asyncio.run(end_in_other_process(folder, GATHERING, Silent()))
    asyncio.run(end_in_other_process(folder, GATHERING, Silent()))
    assert sent == []
