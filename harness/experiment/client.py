"""One client process: `python -m harness.experiment.client PLAN OPERATIONS` runs what the plan says until SIGTERM.

SIGUSR1 stops it too, at once: it skips what clients do for the end of a run.

The workload plugin does the work; this module gives it the stop signal and the file that its operations go to.
"""

import argparse
import json
import logging
import os
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import FrameType

from harness.contracts import registry
from harness.contracts.workloads import ClientPlan, Stop
from harness.store.history import ChainedWriter, TornLine, read_jsonl

log = logging.getLogger(__name__)


def write_client_plan(plan: ClientPlan, path: Path) -> None:
    """Write the plan of a client process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(plan), indent=2) + "\n", encoding="utf-8")


def read_client_plan(path: Path) -> ClientPlan:
    """Read the plan of a client process."""
    return ClientPlan(**json.loads(path.read_text(encoding="utf-8")))


def client_argv(plan: Path, operations: Path) -> list[str]:
    """Return the command line of a client process."""
    return [sys.executable, "-m", __name__, str(plan), str(operations)]


def next_index_in(operations: Path) -> int:
    """Return the next index of a client that was killed, without a torn last line; 0 for a new one."""
    if not operations.exists():
        return 0
    torn = TornLine()
    last = max((line["index"] for line in read_jsonl(operations, torn)), default=-1)
    if torn.path is not None:
        os.truncate(operations, torn.offset)
    return int(last) + 1


def run_client(plan: ClientPlan, operations: Path, stop: Stop) -> None:
    """Do the work of one process until `stop` is set, then finish it."""
    workload = registry.workload(plan.workload)
    log.info("client.started process=%s role=%s", plan.process, plan.role)
    plan = replace(plan, first_index=next_index_in(operations))
    with ChainedWriter(operations) as writer:
        workload.run(plan, writer, stop)
    log.info("client.complete process=%s", plan.process)


def main() -> None:
    """Run one client process."""
    parser = argparse.ArgumentParser(prog="python -m harness.experiment.client", description=__doc__)
    parser.add_argument("plan", type=Path)
    parser.add_argument("operations", type=Path)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", stream=sys.stderr)
    stop = Stop()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stop.at_once = stop.at_once or number == signal.SIGUSR1
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGUSR1, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the harness, which then stops its clients
    run_client(read_client_plan(arguments.plan), arguments.operations, stop)


if __name__ == "__main__":
    main()
