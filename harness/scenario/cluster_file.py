"""How does a cluster file become part of a scenario? In place of its path, with the lines of its own in messages."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.cluster.systems.system import EXTERNAL
from harness.errors import ScenarioError
from harness.kafka.security.references import absolute
from harness.scenario.errors import problems_of
from harness.scenario.model import ClusterFile
from harness.scenario.source import CLUSTER, KeyPath, Problem, Source, parse_yaml, text_of

PROPERTIES, CLIENT = "properties", "client"


def with_cluster_file(source: Source, folder: Path) -> None:
    """Put what a cluster file says in place of its path, which may begin in a folder; nothing to do without a path.

    A scenario with a cluster file starts nothing, whatever system and driver it names otherwise.
    """
    named = source.data.get(CLUSTER)
    if not isinstance(named, str):
        return
    path = folder / Path(named).expanduser()
    data, origins, problems = read_cluster_file(path)
    source.problems += problems
    if problems:
        source.data.pop(CLUSTER)
        return
    source.data |= {"system": EXTERNAL, "driver": EXTERNAL, CLUSTER: data}
    source.origins |= origins


def read_cluster_file(path: Path) -> tuple[dict[str, Any], dict[KeyPath, str], list[Problem]]:
    """Return a file's part of a scenario under `cluster`, where each value stands, and what is wrong with them."""
    try:
        file = parse_yaml(text_of(path, str(path)), str(path))
    except ScenarioError as error:
        return {}, {}, [Problem((CLUSTER,), str(error))]
    own = file.data if isinstance(file.data, dict) else {}
    problems = list(file.problems)
    if not problems and not own:
        problems.append(Problem((), "must be a mapping of keys; a cluster file starts with `id:`"))
    if isinstance(client := own.get(CLIENT), dict):
        own[CLIENT] = absolute({name: str(value) for name, value in client.items()}, path.parent.absolute())
    try:
        ClusterFile.model_validate(own)
    except ValidationError as error:
        problems += [] if problems else problems_of(ClusterFile, error)
    brokers = own.get("brokers")
    cluster = {
        "brokers": len(brokers) if isinstance(brokers, list) else 0,
        PROPERTIES: own.pop(PROPERTIES, {}),
        EXTERNAL: own,
    }
    origins = {_placed(key): origin for key, origin in file.origins.items()}
    return cluster, origins, [Problem(each.path, each.message, file.origin_of(each)) for each in problems]


def _placed(key: KeyPath) -> KeyPath:
    """Return where a value of the file is in the scenario."""
    return (CLUSTER, *key) if key[:1] == (PROPERTIES,) else (CLUSTER, EXTERNAL, *key)
