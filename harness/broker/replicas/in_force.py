"""Which configuration do the replicas here act on? The state-change log says so whenever that changes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.broker.log.settings import LogSettings
from harness.broker.replicas.partition import Partition
from harness.broker.state_log import StateLog
from harness.events import ConfigurationInForce


@dataclass(slots=True, kw_only=True)
class ConfigurationsInForce:
    """The configuration that the log has of each topic."""

    state_log: StateLog
    min_insync_replicas: Callable[[str], int]
    """What appends to a topic ask for."""
    _logged: dict[str, tuple[LogSettings, int]] = field(default_factory=dict)

    def look(self, partition: Partition) -> None:
        """Log what a replica acts on, unless the last line about its topic says the same."""
        topic, _ = partition.key
        acts_on = (partition.log.settings, self.min_insync_replicas(topic))
        if self._logged.get(topic) != acts_on:
            self._logged[topic] = acts_on
            self._emit(partition, hosted=True, properties=_properties(*acts_on))

    def gone(self, partition: Partition) -> None:
        """Log that this was the last replica of its topic here."""
        if self._logged.pop(partition.key[0], None) is not None:
            self._emit(partition, hosted=False, properties=[])

    def _emit(self, partition: Partition, *, hosted: bool, properties: list[str]) -> None:
        topic, number = partition.key
        self.state_log.emit(ConfigurationInForce(topic=topic, partition=number, hosted=hosted, properties=properties))


def _properties(settings: LogSettings, min_insync_replicas: int) -> list[str]:
    policy = [name for name, has in (("compact", settings.compacts), ("delete", settings.deletes)) if has]
    values = {
        "cleanup.policy": ",".join(policy),
        "compression.type": settings.compression,
        "delete.retention.ms": settings.delete_retention_ms,
        "max.message.bytes": settings.max_batch_bytes,
        "message.timestamp.type": "LogAppendTime" if settings.append_time else "CreateTime",
        "min.compaction.lag.ms": settings.min_compaction_lag_ms,
        "min.insync.replicas": min_insync_replicas,
        "retention.bytes": settings.retention_bytes,
        "retention.ms": settings.retention_ms,
        "segment.bytes": settings.segment_bytes,
    }
    return [f"{name}={value}" for name, value in values.items()]
