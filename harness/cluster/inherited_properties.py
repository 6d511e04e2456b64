"""Which properties do replicas act on, and which of their brokers' do topics inherit (Kafka's `LogConfig`)?"""

import re
from collections.abc import Mapping
from types import MappingProxyType

INHERITED: Mapping[str, str] = MappingProxyType(
    {
        "cleanup.policy": "log.cleanup.policy",
        "compression.type": "compression.type",
        "delete.retention.ms": "log.cleaner.delete.retention.ms",
        "max.message.bytes": "message.max.bytes",
        "message.timestamp.type": "log.message.timestamp.type",
        "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
        "min.insync.replicas": "min.insync.replicas",
        "retention.bytes": "log.retention.bytes",
        "retention.ms": "log.retention.ms",
        "segment.bytes": "log.segment.bytes",
    }
)
"""By the name of a topic's property: the broker's property that holds where the topic sets none."""
LISTS = frozenset({"cleanup.policy"})
NAMES = frozenset({"compression.type", "message.timestamp.type"})
"""Properties whose values are names; those of all others but lists are whole numbers."""
_RETENTION = (("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000))
"""The first of these that is set counts, with the milliseconds of its unit."""
_NUMBER = re.compile(r"-?\d+")


def stated_defaults(brokers: Mapping[str, str]) -> str:
    """Return what topics inherit of the properties files of brokers, as name=value, separated by semicolons."""
    values = {name: _normal(name, brokers.get(inherited, "")) for name, inherited in INHERITED.items()}
    set_ones = ((brokers.get(name, "").strip(), unit) for name, unit in _RETENTION)
    retention, unit = next(((text, unit) for text, unit in set_ones if text), ("", 1))
    values["retention.ms"] = str(int(retention) * unit) if _NUMBER.fullmatch(retention) else ""
    return ";".join(f"{name}={value}" for name, value in values.items() if value)


def _normal(name: str, text: str) -> str:
    if name in LISTS:
        return ",".join(sorted(part.strip() for part in text.split(",") if part.strip()))
    return text.strip()
