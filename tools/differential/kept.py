"""Which scripts are kept, with what Kafka 3.9.1 answered, so that this project's broker is compared without Kafka?

`kept-3.9.json` has them by what they are about; `python -m tools.differential --record` asks Kafka again. The workload
play-scripts has many more, which `--keep` records.
"""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path

from harness.client_rules.scripts.recorded import Kind, Recorded, path_of
from harness.client_rules.scripts.target import Target
from harness.cluster.broker_properties import profile
from harness.scenario.file import load_scenario

KEPT = Path(__file__).with_name("kept-3.9.json")
SCENARIOS = {
    Kind.QUICK: "scripts-light",
    Kind.SLOW: "slow-scripts-light",
    Kind.RESTARTS: "restarted-scripts-light",
}
"""In `tools`; they say which properties brokers have when recorded scripts are played to them."""


def properties_of(kind: Kind) -> dict[str, str]:
    """Return the properties of a broker that scripts of a kind are played to."""
    scenario = load_scenario(str(Path(__file__).parents[1] / f"{SCENARIOS[kind]}.yaml"))
    return profile(1) | dict(scenario.cluster.properties)


def kept(path: Path = KEPT) -> list[Recorded]:
    """Return the kept scripts."""
    return [Recorded.from_json(each) for each in json.loads(path.read_text(encoding="utf-8"))]


def write(scripts: list[Recorded], path: Path = KEPT) -> None:
    """Write kept scripts, one step a line."""
    path.write_text(json.dumps([each.as_json() for each in scripts], indent=1, sort_keys=True) + "\n", encoding="utf-8")


def write_for_load(scripts: Iterable[Recorded], kind: Kind) -> None:
    """Write the scripts of the workload play-scripts; the same scripts give the same bytes."""
    lines = "".join(json.dumps(each.as_json(), separators=(",", ":")) + "\n" for each in scripts)
    path_of(kind).write_bytes(gzip.compress(lines.encode(), mtime=0))


async def asked_again(scripts: list[Recorded], kafka: Target) -> list[Recorded]:
    """Return the scripts with what Kafka answers now."""
    await kafka.warm_up()
    return [
        Recorded(about=each.about, script=each.script, answers=await kafka.play(each.script, f"kept{number}-"))
        for number, each in enumerate(scripts)
    ]
