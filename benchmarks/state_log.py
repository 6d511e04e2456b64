"""What does a broker's state-change log cost under full load? Beside brokers that write none, in one run.

    python -m benchmarks.state_log [--seconds 10] [--rounds 3]

Both clusters stand at the same time and are measured in turns. The processor time of brokers depends least on what else
the machine does.
"""

import argparse
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import Console

from benchmarks.broker import BROKERS, throughput
from benchmarks.measuring import comparison
from benchmarks.peers import Peer, create_topic, running

SIZES = {"small": 100, "large": 1024}
"""Bytes of a record, by topic."""
PARTITIONS = 6
SILENT = """\
from harness.broker.state_log import LineStateLog

LineStateLog.emit = lambda self, event: None
"""
"""Python runs `sitecustomize` of its path before anything else."""


@contextmanager
def without_state_log(folder: Path) -> Iterator[None]:
    """Let processes that are started meanwhile write no state-change log."""
    (folder / "sitecustomize.py").write_text(SILENT, encoding="utf-8")
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), before)))
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def figures_of(peer: Peer, seconds: float) -> dict[str, float]:
    """Return everything that is measured, once."""
    figures: dict[str, float] = {}
    for topic, size in SIZES.items():
        records, _, spent_s = throughput(peer, topic, size, seconds)
        figures |= {f"{size} B, records/s": records, f"{size} B, processor s/GB": spent_s}
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as name, ExitStack() as stack:
        folder = Path(name)
        clusters = {"with the log": stack.enter_context(running("ours", folder / "with"))}
        with without_state_log(folder):
            clusters["without"] = stack.enter_context(running("ours", folder / "without"))
        for peer in clusters.values():
            for topic in SIZES:
                create_topic(peer, topic, PARTITIONS)
            throughput(peer, "large", SIZES["large"], 3)
        rounds = [
            {kind: figures_of(peer, options.seconds) for kind, peer in clusters.items()} for _ in range(options.rounds)
        ]
        written = [log.stat().st_size for log in (folder / "without").rglob("state-change.jsonl")]
    assert written == [0] * BROKERS, "those without a log have written something"
    figures = {
        kind: {name: statistics.median(each[kind][name] for each in rounds) for name in rounds[0][kind]}
        for kind in clusters
    }
    Console().print(comparison("figure, median of rounds", figures, ratio="with / without"))
    print("load before and after:", *(f"{load:.1f}" for load in (load_before, os.getloadavg()[0])))


if __name__ == "__main__":
    main()
