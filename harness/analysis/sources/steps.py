"""The steps of the protocol that brokers and ZooKeeper took, walked by the model: how many, and which are illegal.

They are walked when evidence is sealed, and where it is read from its lines. Lines that are odd are gaps: the model
knows nothing of a subject behind one, and accuses nothing.
"""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

import pyarrow as pa

import harness.model
from harness.analysis.tables.arrow import columns_of
from harness.analysis.tables.protocol import STEPS
from harness.model.step import Event
from harness.model.subjects import broker_walker, znode_walker
from harness.model.walk import IllegalStep, Walked, Walker, ZnodeWalker
from harness.store.seal import DIGEST_BYTES

BROKER_STEPS = "broker_steps"
"""Table of the steps in the brokers' logs."""
ZNODE_STEPS = "znode_steps"
"""Table of the steps in ZooKeeper's history."""
STEPS_OF = {"state_changes": BROKER_STEPS, "zookeeper": ZNODE_STEPS}
"""By kind of evidence."""
SHOWN = 100
"""Illegal steps that are kept of each rule: the first ones show what is wrong."""


class Walk:
    """Walks the evidence of one kind of one run."""

    def __init__(self, kind: str, run_id: str = "") -> None:
        self._walker: Walker | ZnodeWalker = broker_walker() if kind == "state_changes" else znode_walker()
        self._run_id = run_id
        self._illegal: list[IllegalStep] = []
        self._kept: dict[str, int] = {}

    def add(self, lines: Iterable[bytes | Event]) -> None:
        """Walk more lines, or their contents: all of ZooKeeper's history, and parts of the brokers' logs in order."""
        for step in self._walker.walk(lines):
            kept = self._kept[step.rule.id] = self._kept.get(step.rule.id, 0) + 1
            if kept <= SHOWN:
                self._illegal.append(step)

    def table(self) -> pa.Table:
        """Return the rows of the fact."""
        rows = [*map(_count, self._walker.walked), *map(_step, filter(self._walker.may_judge, self._illegal))]
        return pa.Table.from_pylist([{"run_id": self._run_id, **row} for row in rows], schema=columns_of(STEPS))


def _count(walked: Walked) -> dict[str, object]:
    return {
        "subject": walked.subject,
        "broker": walked.broker,
        "incarnation": walked.incarnation,
        "steps": walked.steps,
        "unread": walked.unread,
    }


def _step(step: IllegalStep) -> dict[str, object]:
    topic, partition = step.partition
    return {
        "subject": step.subject,
        "broker": step.broker,
        "incarnation": step.incarnation,
        "rule": step.rule.id,
        "sentence": step.rule.sentence,
        "source": step.rule.source,
        "seq": step.seq,
        "time_ns": step.time_ns,
        "topic": topic,
        "partition": partition,
        "name": step.name,
        "before": step.before,
        "step": json.dumps(step.event, separators=(",", ":")),
    }


@cache
def model_digest() -> str:
    """Return a digest of the model: what was walked by another one is walked again."""
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    modules = sorted(files(harness.model).iterdir(), key=lambda file: file.name)
    for module in modules:
        if module.name.endswith(".py"):
            digest.update(module.read_bytes())
    return digest.hexdigest()
