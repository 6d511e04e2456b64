"""What did a cluster write in one situation, with parts in the place of ids, and where do two clusters differ?"""

import difflib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.store.history import ZnodeChange

Transcript = dict[str, list[str]]
"""By znode, or kind of znode, its changes in order; the order between znodes is chance in both clusters."""
ISR_NOTIFICATIONS = "/isr_change_notification/"
LEFT_OUT = ("timestamp", "topic_id")
"""Of a JSON object: instants, and the id that a topic has from Kafka 2.8 on, which an older protocol does not write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcriber:
    """Transcribes changes of znodes of the brokers, the controller and one topic."""

    topic: str
    """T in the transcript."""
    ids: Mapping[str, int]
    """Broker ids by part."""
    controller: int
    """Broker id of the first controller; its successor is random."""
    controller_epoch: int
    """What it was at the beginning; later ones are told as so many more."""

    def transcript(self, changes: Sequence[ZnodeChange]) -> Transcript:
        """Return the transcript of changes that are in the order of their zxids."""
        transcript: Transcript = defaultdict(list)
        for change in changes:
            if change.path.startswith(ISR_NOTIFICATIONS):
                if change.data and self._named_in(change):
                    transcript[ISR_NOTIFICATIONS] = [
                        "named"
                    ]  # one names all of a while, so how many there are is chance
            elif self._of_interest(change.path):
                transcript[self._path(change.path)].append(self._sentence(change))
        return dict(transcript)

    def _of_interest(self, path: str) -> bool:
        if path.startswith(("/brokers/topics/", "/config/topics/")):
            return path.split("/")[3] == self.topic
        return path.startswith(("/brokers/ids/", "/controller", "/admin/", "/config/changes/"))

    def _path(self, path: str) -> str:
        path = re.sub(rf"/{re.escape(self.topic)}(?=/|$)", "/T", path)
        path = re.sub(r"(?<=/brokers/ids/)\d+", lambda match: self._part(int(match[0])), path)
        return re.sub(r"(?<=_)\d{10}$", "n", path)

    def _named_in(self, change: ZnodeChange) -> bool:
        return any(each["topic"] == self.topic for each in json.loads(change.data)["partitions"])

    def _sentence(self, change: ZnodeChange) -> str:
        if change.path.startswith("/brokers/ids/") or not change.data:
            return change.type
        if change.path == "/controller_epoch":
            return f"{change.type} +{int(change.data) - self.controller_epoch}"
        data = json.loads(change.data)
        if change.path == "/controller":
            return f"{change.type} {'the first' if data['brokerid'] == self.controller else 'another'}"
        return f"{change.type} {json.dumps(self._by_parts(data, ''), sort_keys=True)}"

    def _by_parts(self, data: Any, key: str) -> Any:
        """Return JSON with parts for broker ids, T for the topic, and without what `LEFT_OUT` names."""
        if isinstance(data, dict):
            fields = {name: value for name, value in data.items() if name not in LEFT_OUT}
            return {
                ("T" if name == self.topic else name): self._by_parts(value, name) for name, value in fields.items()
            }
        if isinstance(data, list):
            return [self._part(each) if type(each) is int else self._by_parts(each, key) for each in data]
        if key == "controller_epoch":
            return f"+{data - self.controller_epoch}"
        if key == "leader":
            return self._part(data)
        return data.replace(self.topic, "T") if isinstance(data, str) else data

    def _part(self, broker_id: int) -> str:
        return next((part for part, own in self.ids.items() if own == broker_id), str(broker_id))


def differences(ours: Transcript, theirs: Transcript) -> list[str]:
    """Return the lines that only one of two transcripts has: `-` ours, `+` theirs, each after its znode."""
    different: list[str] = []
    for path in sorted(ours.keys() | theirs.keys()):
        lines = difflib.ndiff(ours.get(path, []), theirs.get(path, []))
        different += [f"{line[0]} {path}: {line[2:]}" for line in lines if line[0] in "-+"]
    return different
