"""A broker's metrics for Prometheus, under the JMX exporter's names for Kafka, so that its dashboards work.

Threads of their own serve them, only if configured (`prometheus.port`): a thread asks the broker's loop for one
snapshot, so that no scrape sees a broker in the middle of a step. This module is imported only where such a port is
opened.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import GCCollector, Histogram, PlatformCollector, ProcessCollector, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.registry import Collector, CollectorRegistry

from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.statistics import GroupCounters, Meter
from harness.broker.metrics.metrics import BrokerMetrics
from harness.broker.metrics.scrape_server import ScrapeServer, serve
from harness.broker.wire.messages import ApiKey

_log = logging.getLogger(__name__)

LOOK_TIMEOUT_S = 10.0
"""How long a scrape waits for a busy broker."""
HOLD_LOOK_S = 0.02
"""Interval at which the latency of the loop is measured."""
HOLD_TIME_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the buckets for that; no step should take more than the fifth."""
REQUEST_TIME_S = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets for request times; a long poll takes half a second."""


class _Number(NamedTuple):
    name: str
    help: str
    of: Callable[[BrokerMetrics], float]


_REPLICAS = "kafka_server_replicamanager_"
_TOPICS = "kafka_server_brokertopicmetrics_"
_CONTROLLER = "kafka_controller_kafkacontroller_"
_CLEANER = "kafka_log_logcleaner_"
_CLEANERS = "kafka_log_logcleanermanager_"
_GROUPS = "kafka_coordinator_group_groupmetadatamanager_"
_COORDINATOR = "kafka_server_group_coordinator_metrics_"
_TRANSACTIONS = "kafka_server_transaction_coordinator_metrics_"
_MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
_VERIFICATION = "kafka_server_addpartitionstotxnmanager_"


def _groups_in(state: GroupState) -> _Number:
    return _Number(
        f"{_GROUPS}numgroups{state.lower()}", f"Groups in state {state}.", lambda m: m.coordinator.groups.get(state, 0)
    )


def _metered(name: str, help_: str, meter: Callable[[GroupCounters], Meter]) -> tuple[_Number, _Number]:
    """Return the count of an event, and its rate in the last minute."""
    return (
        _Number(f"{_COORDINATOR}{name}_count", f"{help_}.", lambda m: meter(m.coordinator.counters).count),
        _Number(
            f"{_COORDINATOR}{name}_rate",
            f"{help_}, a second of late.",
            lambda m: meter(m.coordinator.counters).per_s(m.coordinator.now_ms),
        ),
    )


GAUGES = (
    _Number(_REPLICAS + "partitioncount", "Replicas on this broker.", lambda m: m.partitions),
    _Number(_REPLICAS + "leadercount", "Partitions that this broker leads.", lambda m: m.leaders),
    _Number(
        _REPLICAS + "underreplicatedpartitions",
        "Partitions led here whose ISR lacks a replica.",
        lambda m: m.under_replicated,
    ),
    _Number(
        _REPLICAS + "underminisrpartitioncount",
        "Partitions led here whose ISR is too small for acks=all.",
        lambda m: m.under_min_isr,
    ),
    _Number(
        _REPLICAS + "offlinereplicacount", "Replicas on a directory that has failed.", lambda m: m.offline_replicas
    ),
    _Number(
        _REPLICAS + "produceridcount",
        "Producers with an id that the logs know, once for each log.",
        lambda m: m.producer_ids,
    ),
    _Number(
        _REPLICAS + "partitionswithlatetransactionscount",
        "Partitions led here whose oldest open transaction should have ended long ago.",
        lambda m: m.late_transactions,
    ),
    _Number("kafka_log_size_bytes", "Bytes in all logs.", lambda m: m.log_bytes),
    _Number(
        _CONTROLLER + "activecontrollercount",
        "1 while this broker believes to be controller.",
        lambda m: m.is_controller,
    ),
    _Number(
        _CONTROLLER + "activecontrollerid",
        "The controller that this broker knows; -1 for none.",
        lambda m: m.controller.active_controller_id,
    ),
    _Number(
        _CONTROLLER + "offlinepartitionscount",
        "Partitions without a leader; 0 on a broker that is not controller, as the next seven.",
        lambda m: m.controller.offline_partition_count,
    ),
    _Number(
        _CONTROLLER + "preferredreplicaimbalancecount",
        "Partitions that another than their first replica leads.",
        lambda m: m.controller.preferred_replica_imbalance_count,
    ),
    _Number(_CONTROLLER + "globaltopiccount", "Topics of the cluster.", lambda m: m.controller.global_topic_count),
    _Number(
        _CONTROLLER + "globalpartitioncount",
        "Partitions of the cluster that ever had a leader.",
        lambda m: m.controller.global_partition_count,
    ),
    _Number(_CONTROLLER + "topicstodeletecount", "Topics to delete.", lambda m: m.controller.topics_to_delete_count),
    _Number(
        _CONTROLLER + "replicastodeletecount", "Replicas to delete.", lambda m: m.controller.replicas_to_delete_count
    ),
    _Number(
        _CONTROLLER + "topicsineligibletodeletecount",
        "Topics to delete that cannot be deleted now.",
        lambda m: m.controller.ineligible_topics_to_delete_count,
    ),
    _Number(
        _CONTROLLER + "replicasineligibletodeletecount",
        "Replicas to delete that cannot be deleted now.",
        lambda m: m.controller.ineligible_replicas_to_delete_count,
    ),
    _Number(
        _CONTROLLER + "controllerstate", "What the controller does, by Kafka's number.", lambda m: m.event_times.state
    ),
    _Number(
        "kafka_controller_controllereventmanager_eventqueuesize",
        "Events that wait for the controller.",
        lambda m: m.event_queue_size,
    ),
    _Number(
        _CLEANER + "cleaner_recopy_percent",
        "How much of what the last cleanings read stayed.",
        lambda m: m.cleaner.recopy_percent,
    ),
    _Number(
        _CLEANER + "max_buffer_utilization_percent",
        "How full the memory for keys was in the last cleanings.",
        lambda m: m.cleaner.max_buffer_utilization_percent,
    ),
    _Number(_CLEANER + "max_clean_time_secs", "Seconds of the last cleanings.", lambda m: m.cleaner.max_clean_time_s),
    _Number(
        _CLEANER + "max_compaction_delay_secs",
        "For how long some log was due by max.compaction.lag.ms.",
        lambda m: m.cleaner.max_compaction_delay_s,
    ),
    _Number(_CLEANER + "deadthreadcount", "Cleaners that have ended.", lambda m: m.cleaner.dead_cleaners),
    _Number(
        _CLEANERS + "max_dirty_percent",
        "How much of the dirtiest log is dirty.",
        lambda m: int(100 * m.cleaner.dirtiest_ratio),
    ),
    _Number(
        _CLEANERS + "time_since_last_run_ms",
        "Since a cleaner looked for a dirty log.",
        lambda m: m.cleaner.since_last_look_ms,
    ),
    _Number(
        _GROUPS + "numgroups", "Groups that this broker coordinates.", lambda m: sum(m.coordinator.groups.values())
    ),
    *map(_groups_in, GroupState),
    _Number(_GROUPS + "numoffsets", "Offsets that these have committed.", lambda m: m.coordinator.offsets),
    _Number(
        _COORDINATOR + "partition_load_time_max",
        "Milliseconds that the longest load of groups took.",
        lambda m: 1000 * m.coordinator.loads.longest_s,
    ),
    _Number(
        _COORDINATOR + "partition_load_time_avg",
        "Milliseconds that loads of groups took.",
        lambda m: 1000 * m.coordinator.loads.average_s,
    ),
    _Number(
        _TRANSACTIONS + "partition_load_time_max",
        "Milliseconds that the longest load of transactions took.",
        lambda m: 1000 * m.transactions.loads.longest_s,
    ),
    _Number(
        _TRANSACTIONS + "partition_load_time_avg",
        "Milliseconds that loads of transactions took.",
        lambda m: 1000 * m.transactions.loads.average_s,
    ),
    _Number(
        _MARKERS + "unknowndestinationqueuesize",
        "Markers that wait for a leader.",
        lambda m: m.transactions.markers_without_destination,
    ),
    _Number(
        _MARKERS + "logappendretryqueuesize",
        "Ended transactions that could not be stored yet.",
        lambda m: m.transactions.retried_stores,
    ),
    *_metered("offset_commit", "Offsets that groups have committed", lambda counters: counters.committed),
    *_metered("offset_expiration", "Offsets that have expired", lambda counters: counters.expired),
    *_metered("offset_deletion", "Offsets that were deleted by name", lambda counters: counters.deleted),
    *_metered("group_completed_rebalance", "Rebalances with an assignment", lambda counters: counters.rebalances),
)
COUNTERS = (
    _Number(_TOPICS + "messagesin", "Records that producers wrote.", lambda m: m.counters.messages_in),
    _Number(_TOPICS + "bytesin", "Bytes that producers wrote.", lambda m: m.counters.bytes_in),
    _Number(_TOPICS + "bytesout", "Bytes that consumers got.", lambda m: m.counters.bytes_out),
    _Number(_TOPICS + "replicationbytesin", "Bytes got from leaders.", lambda m: m.counters.replication_bytes_in),
    _Number(_TOPICS + "replicationbytesout", "Bytes that followers got.", lambda m: m.counters.replication_bytes_out),
    _Number(_REPLICAS + "isrshrinks", "ISRs made smaller.", lambda m: m.counters.isr_shrinks),
    _Number(_REPLICAS + "isrexpands", "ISRs made larger.", lambda m: m.counters.isr_expands),
    _Number(
        _REPLICAS + "failedisrupdates",
        "ISR changes that ZooKeeper did not accept.",
        lambda m: m.counters.failed_isr_updates,
    ),
    _Number(
        _VERIFICATION + "verificationfailurerate",
        "Partitions that were not verified to be part of a transaction.",
        lambda m: m.transactions.verification_failures,
    ),
    _Number(
        "kafka_controller_controllerstats_uncleanleaderelections",
        "Leaders that this broker elected uncleanly.",
        lambda m: m.unclean_leader_elections,
    ),
)
PURGATORIES = (
    _Number("Produce", "", lambda m: m.delayed_produces),
    _Number("Fetch", "", lambda m: m.delayed_fetches),
    _Number("DeleteRecords", "", lambda m: m.delayed_deletions),
    _Number("Rebalance", "", lambda m: m.coordinator.delayed_rebalances),
    _Number("Heartbeat", "", lambda m: m.coordinator.delayed_heartbeats),
)
Family = GaugeMetricFamily | CounterMetricFamily | SummaryMetricFamily


def families(metrics: BrokerMetrics) -> Iterator[Family]:
    """Yield every number of a snapshot."""
    for gauge in GAUGES:
        yield GaugeMetricFamily(gauge.name, gauge.help, value=gauge.of(metrics))
    for counter in COUNTERS:
        yield CounterMetricFamily(counter.name, counter.help, value=counter.of(metrics))
    waiting = GaugeMetricFamily(
        "kafka_server_delayedoperationpurgatory_purgatorysize", "Requests that wait.", labels=["delayedoperation"]
    )
    for purgatory in PURGATORIES:
        waiting.add_metric([purgatory.name], purgatory.of(metrics))
    yield waiting
    for name, help_, of_directories in (
        ("uncleanable_partitions_count", "Logs that cannot be cleaned.", metrics.cleaner.uncleanable_partitions),
        ("uncleanable_bytes", "What of those is dirty.", metrics.cleaner.uncleanable_bytes),
    ):
        by_directory = GaugeMetricFamily(_CLEANERS + name, help_, labels=["logdirectory"])
        for directory, value in of_directories.items():
            by_directory.add_metric([directory], value)
        yield by_directory
    lags = GaugeMetricFamily(
        "kafka_cluster_partition_laststableoffsetlag",
        "Offsets from the last stable one to the high watermark.",
        labels=["topic", "partition"],
    )
    for (topic, partition), lag in sorted(metrics.stable_offset_lags.items()):
        lags.add_metric([topic, str(partition)], lag)
    yield lags
    yield SummaryMetricFamily(
        _VERIFICATION + "verificationtimems",
        "Milliseconds from the question whether partitions are part of a transaction to its answer.",
        count_value=metrics.transactions.verifications,
        sum_value=1000 * metrics.transactions.verification_s,
    )
    queued = metrics.event_times.queued
    yield SummaryMetricFamily(
        "kafka_controller_controllereventmanager_eventqueuetime_seconds",
        "From an event's arrival to its beginning.",
        count_value=queued.count,
        sum_value=queued.total_s,
    )
    processed = SummaryMetricFamily(
        "kafka_controller_controllerstats_eventtime_seconds", "What the controller's events took.", labels=["state"]
    )
    for state, timer in sorted(metrics.event_times.processed.items()):
        processed.add_metric([state.name.lower()], count_value=timer.count, sum_value=timer.total_s)
    yield processed


class _Look(Collector):
    """Takes a snapshot of the broker at every scrape."""

    def __init__(self, look: Callable[[], BrokerMetrics]) -> None:
        self._look = look
        self._loop = asyncio.get_running_loop()

    def collect(self) -> Iterator[Family]:
        """Yield the numbers; runs in a thread of the server, so the snapshot is requested from the loop."""
        return families(asyncio.run_coroutine_threadsafe(self._take(), self._loop).result(LOOK_TIMEOUT_S))

    async def _take(self) -> BrokerMetrics:
        return self._look()


class PrometheusExporter:
    """Serves the metrics of one broker at http://host:port/metrics."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "kafka_network_requestmetrics_totaltime_seconds",
            "From a request's arrival to its answer, waiting included.",
            ["request"],
            buckets=REQUEST_TIME_S,
            registry=self._registry,
        )
        self._held = Histogram(
            "kafka_network_socketserver_loopholdtime_seconds",
            "How long the broker's one loop had no turn for what was due.",
            buckets=HOLD_TIME_S,
            registry=self._registry,
        )
        self._watch: asyncio.Task[None] | None = None
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._server: ScrapeServer | None = None

    @property
    def port(self) -> int:
        """The served port; the configured one unless that is 0."""
        return self._address[1] if self._server is None else self._server.server_port

    def answered(self, api_key: ApiKey, seconds: float) -> None:
        """Count one more request."""
        self._requests.labels(request=_camel(api_key)).observe(seconds)

    async def start(self, look: Callable[[], BrokerMetrics]) -> None:
        """Serve; raises OSError when the port is taken."""
        host, port = self._address
        self._registry.register(_Look(look))
        try:
            self._server = serve(host, port, make_wsgi_app(self._registry))
        except OSError as error:
            raise OSError(error.errno, f"cannot serve metrics on {host}:{port}: {error.strerror}") from error
        self._watch = asyncio.create_task(self._watch_loop(), name="loop-watch")
        _log.info("metrics.started url=http://%s:%d/metrics", host, self.port)

    async def stop(self) -> None:
        """Close the port; a running request is still answered."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if self._server is not None:
            await asyncio.to_thread(self._server.shutdown)
            self._server.server_close()
            self._server = None

    async def _watch_loop(self) -> None:
        now_s = asyncio.get_running_loop().time
        while True:
            due_s = now_s() + HOLD_LOOK_S
            await asyncio.sleep(HOLD_LOOK_S)
            self._held.observe(max(0.0, now_s() - due_s))


def _camel(api_key: ApiKey) -> str:
    """Return the name of an API in Kafka's metrics."""
    return "".join(word.capitalize() for word in api_key.name.split("_"))
