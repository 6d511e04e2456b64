"""Puts real Kafka 3.9 and this project's brokers into the same situations, and prints where their ZooKeeper differs.

    python -m benchmarks.side_by_side [SITUATION ...] [--out FOLDER]

A situation is chosen by a part of its name. Both run the replication protocol of Kafka 2.5, with the same time-outs.
The exit status is the number of situations that differ.
"""

import argparse
import json
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import track

from benchmarks.peers import peers, running
from benchmarks.side_by_side.comparing import Story, Teller, differences
from benchmarks.side_by_side.situations import SITUATIONS, Situation
from benchmarks.side_by_side.stage import PARTS, Stage

PROPERTIES = {"replica.lag.time.max.ms": "3000", "controlled.shutdown.retry.backoff.ms": "500"}
THEIRS = {"inter.broker.protocol.version": "2.5", "auto.leader.rebalance.enable": "false"}
"""Makes real Kafka what this project's brokers are: leaders write their ISR themselves."""
MISSED = "waited in vain for"


def stories(kind: str, situations: list[Situation], folder: Path, console: Console) -> dict[str, Story]:
    """Return what one cluster wrote in each situation, one after the other on one cluster."""
    told: dict[str, Story] = {}
    properties = PROPERTIES | (THEIRS if kind == "kafka" else {})
    with running(kind, folder, brokers=len(PARTS), properties=properties) as peer:
        for number, each in enumerate(track(situations, description=peer.name, console=console)):
            stage = Stage(peer, f"situation-{number:02}", each.controller, len(PARTS))
            try:
                each.act(stage)
                changes = stage.until_quiet()
                teller = Teller(
                    topic=stage.topic,
                    ids=stage.ids,
                    controller=stage.first.broker_id,
                    controller_epoch=stage.first.controller_epoch,
                )
                told[each.name] = teller.tell(changes)
                if stage.missed:
                    told[each.name][MISSED] = stage.missed
            finally:
                stage.close()
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situations", nargs="*", metavar="SITUATION")
    parser.add_argument("--out", type=Path, help="folder for what both wrote, as JSON")
    options = parser.parse_args()
    chosen = [each for each in SITUATIONS if not options.situations or any(x in each.name for x in options.situations)]
    console = Console()
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        told = {kind: stories(kind, chosen, Path(folder), console) for kind in peers()}
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "stories.json").write_text(json.dumps(told, indent=2) + "\n")
    if len(told) < 2:
        raise SystemExit("nothing to compare with")
    differing = 0
    for each in chosen:
        found = differences(told["ours"][each.name], told["kafka"][each.name])
        differing += bool(found)
        console.print(f"{each.name}: " + ("[red]differs[/]" if found else "[green]the same[/]"), highlight=False)
        for line in found:
            console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(chosen)} situations, {differing} differ; - is ours, + is real Kafka")
    raise SystemExit(differing)


if __name__ == "__main__":
    main()
