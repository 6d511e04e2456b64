"""A run in progress as metrics for Prometheus, on loopback; imported only where a port is given."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from prometheus_client import start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from harness.errors import ClusterError
from harness.report.live.watch import Watch
from harness.store.folder import RunFolder

LOOPBACK = "127.0.0.1"


class RunCollector(Collector):
    """Looks at the run at each scrape."""

    def __init__(self, folder: RunFolder, scenario: str) -> None:
        self._watch = Watch(folder)
        self._labels = {"run": folder.run_id, "scenario": scenario}
        self._lock = Lock()
        self._sends: dict[str, int] = {}

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics; counters keep their last value when the load is over."""
        with self._lock:
            numbers = self._watch.numbers()
        names, values = list(self._labels), list(self._labels.values())
        phase = GaugeMetricFamily("chaos_phase", "1 for the phase that the run is in.", labels=[*names, "phase"])
        phase.add_metric([*values, numbers.phase or "none"], 1)
        yield phase
        faults = GaugeMetricFamily("chaos_faults_in_force", "Faults in force, by kind.", labels=[*names, "fault"])
        for kind in sorted(set(numbers.in_force)):
            faults.add_metric([*values, kind], numbers.in_force.count(kind))
        yield faults
        sends = CounterMetricFamily("chaos_sends", "Sends of clients that ended.", labels=[*names, "outcome"])
        for outcome, count in numbers.sends.items():
            sends.add_metric([*values, outcome], count)
        yield sends
        for name, text, value in (
            ("chaos_brokers_registered", "Brokers that are registered.", numbers.brokers),
            ("chaos_partitions", "Partitions of all topics.", numbers.partitions),
            ("chaos_partitions_without_leader", "Partitions without a leader.", numbers.without_leader),
            ("chaos_partitions_isr_not_full", "Partitions with a replica outside the ISR.", numbers.isr_not_full),
        ):
            gauge = GaugeMetricFamily(name, text, labels=names)
            gauge.add_metric(values, value)
            yield gauge


@contextmanager
def served(folder: RunFolder, scenario: str, port: int) -> Iterator[int]:
    """Serve the metrics of a run until the end, and return the port; 0 asks for any.

    Raises:
        ClusterError: the port is taken.
    """
    registry = CollectorRegistry()
    registry.register(RunCollector(folder, scenario))
    try:
        server, thread = start_http_server(port, addr=LOOPBACK, registry=registry)
    except OSError as error:
        raise ClusterError(f"metrics at {LOOPBACK}:{port}: {error.strerror or error}") from error
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
