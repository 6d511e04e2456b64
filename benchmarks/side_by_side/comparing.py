"""What a cluster wrote in one situation, told by parts instead of ids, and where two clusters differ."""

import difflib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from harness.history import ZnodeChange

Story = dict[str, list[str]]
"""By znode, or kind of znode, what became of it, in order; the order between znodes is left to chance by both."""
CONTROLLER_EPOCH = "/controller_epoch"
LEFT_OUT = ("timestamp", "topic_id")
"""Of a JSON object: instants, and the id that a topic has from Kafka 2.8 on, which an older protocol does not write."""


def story(changes: Sequence[ZnodeChange], topic: str, ids: Mapping[str, int], controller_epoch: int) -> Story:
    """Return what was written about the brokers, the controller and one topic.

    Args:
        changes: In the order of their zxids.
        topic: Its name is written T.
        ids: Broker ids by part.
        controller_epoch: What it was at the beginning; later ones are told as so many more.
    """
    parts = {broker_id: part for part, broker_id in ids.items()}
    told: Story = defaultdict(list)
    for change in changes:
        path = change.path.replace(f"/topics/{topic}", "/topics/T").replace(f"topics/{topic}", "topics/T")
        path = re.sub(r"(?<=/brokers/ids/)\d+", lambda found: parts[int(found[0])], path)
        if not _of_interest(path):
            continue
        path = re.sub(r"(?<=_)\d{10}$", "n", path)
        told[path].append(_sentence(change, path, topic, parts, controller_epoch))
    return dict(told)


def differences(ours: Story, theirs: Story) -> list[str]:
    """Return the lines that only one of two stories has: `-` ours, `+` theirs, each after its znode."""
    found: list[str] = []
    for path in sorted(ours.keys() | theirs.keys()):
        lines = difflib.ndiff(ours.get(path, []), theirs.get(path, []))
        found += [f"{line[0]} {path}: {line[2:]}" for line in lines if line[0] in "-+"]
    return found


def _of_interest(path: str) -> bool:
    topic = path.startswith("/brokers/topics/")
    return ("/T" in path if topic else path.startswith(("/brokers/ids/", "/controller", "/admin/"))) or (
        path.startswith(("/isr_change_notification/", "/config/changes/", "/config/topics/T"))
    )


def _sentence(change: ZnodeChange, path: str, topic: str, parts: Mapping[int, str], controller_epoch: int) -> str:
    if change.type == "delete" or not change.data:
        return change.type
    if path.startswith("/brokers/ids/"):
        return change.type
    if path == CONTROLLER_EPOCH:
        return f"{change.type} +{int(change.data) - controller_epoch}"
    try:
        data: Any = json.loads(change.data)
    except ValueError:
        return f"{change.type} {change.data}"
    if path.startswith("/isr_change_notification/"):  # names every topic with news since the last one, in any order
        return f"{change.type} {sorted(each['partition'] for each in data['partitions'] if each['topic'] == topic)}"
    return f"{change.type} {json.dumps(_by_parts(data, path, topic, parts, controller_epoch), sort_keys=True)}"


def _by_parts(data: Any, key: str, topic: str, parts: Mapping[int, str], controller_epoch: int) -> Any:
    """Return JSON with parts for broker ids, T for the topic, and without instants."""
    if isinstance(data, dict):
        names = {name: "T" if name == topic else name for name in data if name not in LEFT_OUT}
        return {new: _by_parts(data[old], old, topic, parts, controller_epoch) for old, new in names.items()}
    if isinstance(data, list):
        return [
            _by_parts(each, "broker" if type(each) is int else key, topic, parts, controller_epoch) for each in data
        ]
    if key == "controller_epoch":
        return f"+{data - controller_epoch}"
    if key in ("broker", "leader", "brokerid"):
        return parts.get(data, data)
    return data.replace(topic, "T") if isinstance(data, str) else data
