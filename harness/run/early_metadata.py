"""Does the history of a quorum's metadata begin after the run's topics were made? What came before is not known."""

import re

from harness.store.folder import RunFolder
from harness.store.history import SNAPSHOT, read_jsonl
from harness.store.seal import Hole

SHOWN_TOPICS = 5
_OF_TOPIC = re.compile(r"/brokers/topics/([^/]+)$")


def begun_late(folder: RunFolder) -> list[Hole]:
    """Return a hole where topics of the run are first known by a snapshot.

    Of Kafka's own topics, which an existing cluster has from the start, no check asks how they came about.
    """
    try:
        if SNAPSHOT.encode() not in folder.zookeeper.read_bytes():
            return []
    except OSError:
        return []
    of_snapshot = [line for line in read_jsonl(folder.zookeeper) if line.get("source") == SNAPSHOT]
    found = {match[1] for line in of_snapshot if (match := _OF_TOPIC.match(line["path"]))}
    topics = sorted(name for name in found if not name.startswith("__"))
    if not topics:
        return []
    listed = ", ".join(topics[:SHOWN_TOPICS]) + (" and others" if len(topics) > SHOWN_TOPICS else "")
    why = f"it begins with a snapshot of the metadata: what became of {listed} before is not known"
    return [Hole(place=folder.zookeeper.relative_to(folder.root).as_posix(), kind="zookeeper", text=why)]
