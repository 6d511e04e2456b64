"""A schedule that has lost a record, as a broker might lose one."""

import json
from dataclasses import replace

from harness.sweep.share import SimulatedSchedule


def lost(schedule: SimulatedSchedule) -> SimulatedSchedule:
    """Take the first record that a producer was told of out of every log and every poll."""
    sent = [json.loads(line) for path, lines in schedule.evidence["operations"] for line in lines if "producer" in path]
    gone = next(each["value"] for each in sent if each["kind"] == "send" and each["type"] == "ok")
    evidence = dict(schedule.evidence)
    evidence["replicas"] = [
        (path, [line for line in lines if f'"value":"{gone}"' not in line]) for path, lines in evidence["replicas"]
    ]
    evidence["operations"] = [
        (path, lines if "producer" in path else [line for line in lines if f'"value":"{gone}"' not in line])
        for path, lines in evidence["operations"]
    ]
    return replace(schedule, evidence=evidence, tables={})
