"""Where a kill's run has its files, and what on this machine is that run's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from harness.cluster.containers.engine import Engine, EngineUnavailable
from harness.cluster.layout import client_process, resource_name
from harness.cluster.supervision.supervisor import PIDS_NAME
from harness.store.folder import RunFolder
from harness.store.phase_log import Phase
from harness.system.pids import identify, read_pid_file

BRIEF = Path(__file__).with_name("brief.yaml")
SEED = 1


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one kill's run, temporary files included; whatever names it is of that run."""

    root: Path

    @property
    def runs(self) -> Path:
        """The folder that its run is made in."""
        return self.root / "runs"

    @property
    def temporary(self) -> Path:
        """Its folder for temporary files."""
        return self.root / "tmp"

    @property
    def log(self) -> Path:
        """What its commands print."""
        return self.root / "chaos.log"

    def run(self) -> RunFolder | None:
        """Return the run folder, once there is one."""
        folders = (path for path in sorted(self.runs.glob("*")) if path.is_dir())
        return next(map(RunFolder, folders), None)

    def start(self, *arguments: str, module: str = "harness") -> "subprocess.Popen[bytes]":
        """Start `chaos`, or another module, with its temporary files in here."""
        self.temporary.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                env=os.environ | {"TMPDIR": str(self.temporary)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def experiment(self, scenario: Path, driver: str) -> "subprocess.Popen[bytes]":
        """Start a whole experiment."""
        where = ("--driver", driver, "--runs", str(self.runs))
        return self.start("run", str(scenario), "--seed", str(SEED), *where)

    def start_phase(self, phase: Phase, run: RunFolder) -> "subprocess.Popen[bytes]":
        """Start a worker that carries out one phase."""
        return self.start(phase, str(run.root), module="tools.kills.phase")

    def client_names(self) -> list[str]:
        """Return the names of the client processes in the run's cluster."""
        run = self.run()
        pids = [] if run is None else (run.cluster / PIDS_NAME).glob(f"{client_process('*')}.pid")
        return sorted(path.stem for path in pids)

    def processes(self) -> list[psutil.Process]:
        """Return the live processes whose arguments or environment name this place."""
        return [process for process in psutil.process_iter() if process.pid != os.getpid() and self._names(process)]

    def pids_of(self, name: str) -> list[int]:
        """Return the process with this name in the run's cluster, here or in a container; none when it is gone."""
        run = self.run()
        if run is None:
            return []
        here = read_pid_file(run.cluster / PIDS_NAME / f"{name}.pid")
        if here is not None:
            return [here.pid] if here.alive() else []
        return [pid for container, pid in contained(run) if container == resource_name(run.root, name)]

    def _names(self, process: psutil.Process) -> bool:
        try:
            texts = [*process.cmdline(), *process.environ().values()]
            return process.status() != psutil.STATUS_ZOMBIE and any(str(self.root) in text for text in texts)
        except psutil.Error:
            return False


def contained(run: RunFolder) -> Iterator[tuple[str, int]]:
    """Yield each container of a run that runs, with the pid of its first process here; none without an engine."""
    try:
        with Engine.connect() as engine:
            for resource in engine.resources(run.root):
                state = engine.state(resource.name) if resource.kind == "container" else None
                if state is not None and state.runs and state.pid is not None and identify(state.pid):
                    yield resource.name, state.pid
    except EngineUnavailable:
        return
