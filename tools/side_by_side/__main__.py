"""Where does ZooKeeper differ after real Kafka 3.9 and this project's brokers were in the same situations?

    python -m tools.side_by_side [SITUATION ...] [--record]

A situation is chosen by a part of its name. Both run the replication protocol of Kafka 2.5, with the same time-outs.
What real Kafka wrote is kept in kafka-3.9.json beside this file and compared with; `--record` starts real Kafka
(`make kafka-libs`) and writes it anew. The exit status is 1 when a situation differs, else 0.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from tools.peers import running
from tools.side_by_side.comparing import Transcriber, Transcript, differences
from tools.side_by_side.situations import SITUATIONS, Situation
from tools.side_by_side.stage import PARTS, Stage

RECORDED = Path(__file__).parent / "kafka-3.9.json"
PROPERTIES = {
    "replica.lag.time.max.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "500",
    "auto.leader.rebalance.enable": "false",
}
THEIRS = {"inter.broker.protocol.version": "2.5"}
"""Makes real Kafka what this project's brokers are: leaders write their ISR themselves."""
MISSED = "waited in vain for"


def transcript_of(stage: Stage, situation: Situation) -> Transcript:
    """Return what is written in one situation."""
    situation.act(stage)
    changes = stage.until_quiet()
    transcriber = Transcriber(
        topic=stage.topic,
        ids=stage.ids,
        controller=stage.first.broker_id,
        controller_epoch=stage.first.controller_epoch,
    )
    transcript = transcriber.transcript(changes)
    return transcript | {MISSED: stage.missed} if stage.missed else transcript


def transcripts(kind: str, situations: Sequence[Situation], folder: Path, console: Console) -> dict[str, Transcript]:
    """Return what one cluster wrote in each situation, one after the other on one cluster."""
    by_situation: dict[str, Transcript] = {}
    properties = PROPERTIES | (THEIRS if kind == "kafka" else {})
    with running(kind, folder, brokers=len(PARTS), properties=properties) as peer:
        for number, each in enumerate(track(situations, description=peer.name, console=console)):
            stage = Stage(peer, f"situation-{number:02}", each.controller, len(PARTS))
            try:
                by_situation[each.name] = transcript_of(stage, each)
            finally:
                stage.close()
    return by_situation


def recorded() -> dict[str, Transcript]:
    """Return what real Kafka wrote, by situation."""
    by_situation: dict[str, Transcript] = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    return by_situation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situations", nargs="*", metavar="SITUATION")
    parser.add_argument("--record", action="store_true", help="start real Kafka, write down what it does, and end")
    options = parser.parse_args()
    chosen = [each for each in SITUATIONS if not options.situations or any(x in each.name for x in options.situations)]
    console = Console()
    with tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder:
        if options.record:
            theirs = recorded() | transcripts("kafka", chosen, Path(folder), console)
            RECORDED.write_text(json.dumps(theirs, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            return
        ours = transcripts("ours", chosen, Path(folder), console)
    theirs = recorded()
    differing = 0
    for each in chosen:
        if each.name in theirs:
            lines = differences(ours[each.name], theirs[each.name])
        else:
            lines = ["real Kafka was not recorded; see --record"]
        differing += bool(lines)
        console.print(f"{each.name}: " + ("[red]differs[/]" if lines else "[green]the same[/]"), highlight=False)
        for line in lines:
            console.print(f"    {line}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{len(chosen)} situations, {differing} differ; - is ours, + is real Kafka", highlight=False)
    raise SystemExit(bool(differing))


if __name__ == "__main__":
    main()
