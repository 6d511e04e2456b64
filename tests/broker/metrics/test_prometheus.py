"""What Prometheus gets when it asks a broker's port."""

import asyncio
import json
import socket
import threading
from contextlib import ExitStack

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from harness.broker.cleaner.statistics import CleanerStatistics, LastCleaning
from harness.broker.controller.statistics import ControllerState, ControllerStatistics, EventTimes
from harness.broker.coordinator.group import GroupState
from harness.broker.coordinator.statistics import CoordinatorStatistics, GroupCounters, LoadTimes, Meter
from harness.broker.metrics import scrape_server
from harness.broker.metrics.metrics import BrokerMetrics
from harness.broker.metrics.prometheus import HOLD_LOOK_S, PrometheusExporter
from harness.broker.replicas.counters import Counters
from harness.broker.transactions.statistics import TransactionStatistics
from harness.broker.wire.messages import ApiKey
from harness.system.waiting import until
from tools.side_by_side.metric_names import RECORDED

pytestmark = pytest.mark.real_time("the client library serves from threads, on a real port")


def metrics() -> BrokerMetrics:
    """Metrics of which no two have the same value."""
    times = EventTimes()
    times.begin("BrokerChange", 0.25)
    times.end(0.5)
    return BrokerMetrics(
        partitions=101,
        leaders=102,
        under_replicated=103,
        under_min_isr=104,
        offline_replicas=105,
        producer_ids=112,
        late_transactions=113,
        stable_offset_lags={("orders", 3): 114},
        log_bytes=106,
        delayed_produces=107,
        delayed_fetches=108,
        delayed_deletions=109,
        is_controller=True,
        controller=ControllerStatistics(
            active_controller_id=201,
            offline_partition_count=202,
            preferred_replica_imbalance_count=203,
            global_topic_count=204,
            global_partition_count=205,
            topics_to_delete_count=206,
            replicas_to_delete_count=207,
            ineligible_topics_to_delete_count=208,
            ineligible_replicas_to_delete_count=209,
        ),
        unclean_leader_elections=110,
        event_queue_size=111,
        event_times=times,
        counters=Counters(
            messages_in=301,
            bytes_in=302,
            bytes_out=303,
            replication_bytes_in=304,
            replication_bytes_out=305,
            isr_shrinks=306,
            isr_expands=307,
            failed_isr_updates=308,
        ),
        cleaner=CleanerStatistics(
            last=(
                LastCleaning(bytes_read=1000, bytes_written=401, seconds=402.5, buffer_utilization=0.403, delay_ms=1),
                LastCleaning(bytes_read=0, bytes_written=0, seconds=7.0, buffer_utilization=0.1, delay_ms=404_900),
            ),
            dirtiest_ratio=0.405,
            since_last_look_ms=406,
            dead_cleaners=407,
            uncleanable_partitions={"/d": 408, "/e": 409},
            uncleanable_bytes={"/d": 410, "/e": 411},
        ),
        coordinator=CoordinatorStatistics(
            groups={state: 501 + number for number, state in enumerate(GroupState)},
            offsets=506,
            delayed_rebalances=513,
            delayed_heartbeats=514,
            loads=LoadTimes(count=2, total_s=1.014, longest_s=0.508),
            counters=GroupCounters(committed=meter(509), expired=meter(510), deleted=meter(511), rebalances=meter(512)),
        ),
        transactions=TransactionStatistics(
            loads=LoadTimes(count=2, total_s=1.204, longest_s=0.603),
            markers_without_destination=604,
            retried_stores=605,
            verification_failures=606,
            verifications=607,
            verification_s=0.608,
        ),
    )


def meter(count: int) -> Meter:
    """What has happened so often, all at once."""
    counted = Meter()
    counted.mark(count, 0)
    return counted


HELD = "kafka_network_socketserver_loopholdtime_seconds"
SHOWN = {
    "kafka_server_replicamanager_partitioncount": 101,
    "kafka_server_replicamanager_leadercount": 102,
    "kafka_server_replicamanager_underreplicatedpartitions": 103,
    "kafka_server_replicamanager_underminisrpartitioncount": 104,
    "kafka_server_replicamanager_offlinereplicacount": 105,
    "kafka_server_replicamanager_produceridcount": 112,
    "kafka_server_replicamanager_partitionswithlatetransactionscount": 113,
    "kafka_log_size_bytes": 106,
    "kafka_server_delayedoperationpurgatory_purgatorysize Produce": 107,
    "kafka_server_delayedoperationpurgatory_purgatorysize Fetch": 108,
    "kafka_server_delayedoperationpurgatory_purgatorysize DeleteRecords": 109,
    "kafka_server_delayedoperationpurgatory_purgatorysize Rebalance": 513,
    "kafka_server_delayedoperationpurgatory_purgatorysize Heartbeat": 514,
    "kafka_controller_controllerstats_uncleanleaderelections_total": 110,
    "kafka_controller_controllereventmanager_eventqueuesize": 111,
    "kafka_controller_kafkacontroller_activecontrollercount": 1,
    "kafka_controller_kafkacontroller_activecontrollerid": 201,
    "kafka_controller_kafkacontroller_offlinepartitionscount": 202,
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": 203,
    "kafka_controller_kafkacontroller_globaltopiccount": 204,
    "kafka_controller_kafkacontroller_globalpartitioncount": 205,
    "kafka_controller_kafkacontroller_topicstodeletecount": 206,
    "kafka_controller_kafkacontroller_replicastodeletecount": 207,
    "kafka_controller_kafkacontroller_topicsineligibletodeletecount": 208,
    "kafka_controller_kafkacontroller_replicasineligibletodeletecount": 209,
    "kafka_controller_kafkacontroller_controllerstate": ControllerState.IDLE,
    "kafka_server_brokertopicmetrics_messagesin_total": 301,
    "kafka_server_brokertopicmetrics_bytesin_total": 302,
    "kafka_server_brokertopicmetrics_bytesout_total": 303,
    "kafka_server_brokertopicmetrics_replicationbytesin_total": 304,
    "kafka_server_brokertopicmetrics_replicationbytesout_total": 305,
    "kafka_server_replicamanager_isrshrinks_total": 306,
    "kafka_server_replicamanager_isrexpands_total": 307,
    "kafka_server_replicamanager_failedisrupdates_total": 308,
    "kafka_log_logcleaner_cleaner_recopy_percent": 40,
    "kafka_log_logcleaner_max_buffer_utilization_percent": 40,
    "kafka_log_logcleaner_max_clean_time_secs": 402,
    "kafka_log_logcleaner_max_compaction_delay_secs": 404,
    "kafka_log_logcleaner_deadthreadcount": 407,
    "kafka_log_logcleanermanager_max_dirty_percent": 40,
    "kafka_log_logcleanermanager_time_since_last_run_ms": 406,
    "kafka_log_logcleanermanager_uncleanable_partitions_count /d": 408,
    "kafka_log_logcleanermanager_uncleanable_partitions_count /e": 409,
    "kafka_log_logcleanermanager_uncleanable_bytes /d": 410,
    "kafka_log_logcleanermanager_uncleanable_bytes /e": 411,
    "kafka_coordinator_group_groupmetadatamanager_numgroups": 501 + 502 + 503 + 504 + 505,
    "kafka_coordinator_group_groupmetadatamanager_numgroupsempty": 501,
    "kafka_coordinator_group_groupmetadatamanager_numgroupspreparingrebalance": 502,
    "kafka_coordinator_group_groupmetadatamanager_numgroupscompletingrebalance": 503,
    "kafka_coordinator_group_groupmetadatamanager_numgroupsstable": 504,
    "kafka_coordinator_group_groupmetadatamanager_numgroupsdead": 505,
    "kafka_coordinator_group_groupmetadatamanager_numoffsets": 506,
    "kafka_server_group_coordinator_metrics_partition_load_time_avg": 507,
    "kafka_server_group_coordinator_metrics_partition_load_time_max": 508,
    "kafka_server_group_coordinator_metrics_offset_commit_count": 509,
    "kafka_server_group_coordinator_metrics_offset_commit_rate": 509 / 30,
    "kafka_server_group_coordinator_metrics_offset_expiration_count": 510,
    "kafka_server_group_coordinator_metrics_offset_expiration_rate": 510 / 30,
    "kafka_server_group_coordinator_metrics_offset_deletion_count": 511,
    "kafka_server_group_coordinator_metrics_offset_deletion_rate": 511 / 30,
    "kafka_server_group_coordinator_metrics_group_completed_rebalance_count": 512,
    "kafka_server_group_coordinator_metrics_group_completed_rebalance_rate": 512 / 30,
    "kafka_server_transaction_coordinator_metrics_partition_load_time_avg": 602,
    "kafka_server_transaction_coordinator_metrics_partition_load_time_max": 603,
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize": 604,
    "kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize": 605,
    "kafka_server_addpartitionstotxnmanager_verificationfailurerate_total": 606,
    "kafka_server_addpartitionstotxnmanager_verificationtimems_count": 607,
    "kafka_server_addpartitionstotxnmanager_verificationtimems_sum": 608,
    "kafka_cluster_partition_laststableoffsetlag 3 orders": 114,
    "kafka_controller_controllereventmanager_eventqueuetime_seconds_count": 1,
    "kafka_controller_controllereventmanager_eventqueuetime_seconds_sum": 0.25,
    "kafka_controller_controllerstats_eventtime_seconds_count broker_change": 1,
    "kafka_controller_controllerstats_eventtime_seconds_sum broker_change": 0.5,
    "kafka_network_requestmetrics_totaltime_seconds_count Fetch": 2,
    "kafka_network_requestmetrics_totaltime_seconds_sum Fetch": 0.75,
    "kafka_network_requestmetrics_totaltime_seconds_count LeaderAndIsr": 1,
    "kafka_network_requestmetrics_totaltime_seconds_sum LeaderAndIsr": 2.0,
}


OF_KAFKA = (
    "kafka_coordinator_group_",
    "kafka_server_group_coordinator_",
    "kafka_log_logcleaner",
    "kafka_server_delayed",
)
NOT_HERE = {"AlterAcls", "ElectLeader", "RemoteFetch", "topic"}
"""Purgatories of Kafka 3.9 of what is not there, or waits in no purgatory here."""


def test_groups_and_cleaners_are_shown_by_the_names_of_kafkas_mbeans() -> None:
    """Only directories of logs are labels here and there, and each machine has its own."""
    of_kafka = set(json.loads(RECORDED.read_text()))
    shown = {name.partition(" /")[0] for name in SHOWN if name.startswith(OF_KAFKA)}
    purgatory = "kafka_server_delayedoperationpurgatory_purgatorysize"
    assert of_kafka - shown == {f"{purgatory} {name}" for name in NOT_HERE}
    assert shown <= of_kafka


async def scrape(exporter: PrometheusExporter, *, measured: bool = False) -> dict[str, float]:
    """Return what is shown, by name and the value of the label if there is one; buckets and the process left out.

    So is what the exporter measures itself, unless that is `measured`.
    """
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{exporter.port}/metrics", timeout=120)
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for family in text_string_to_metric_families(answer.raise_for_status().text)
        for sample in family.samples
        if sample.name.startswith("kafka_") and not sample.name.endswith(("_bucket", "_created"))
        if measured or not sample.name.startswith(HELD)
    }


async def test_every_number_has_the_name_of_kafkas() -> None:
    exporter = PrometheusExporter("127.0.0.1", 0)
    exporter.answered(ApiKey.FETCH, 0.5)
    exporter.answered(ApiKey.FETCH, 0.25)
    exporter.answered(ApiKey.LEADER_AND_ISR, 2.0)
    await exporter.start(metrics)
    try:
        assert await scrape(exporter) == SHOWN
    finally:
        await exporter.stop()


async def test_a_step_that_holds_the_loop_is_measured() -> None:
    exporter = PrometheusExporter("127.0.0.1", 0)
    await exporter.start(metrics)
    now_s = asyncio.get_running_loop().time
    try:
        await asyncio.sleep(0)
        free_s = now_s() + HOLD_LOOK_S + 0.1
        while now_s() < free_s:
            pass
        shown = await scrape(exporter, measured=True)
    finally:
        await exporter.stop()
    assert shown[f"{HELD}_count"] >= 1
    assert shown[f"{HELD}_sum"] >= 0.1


async def test_a_look_is_taken_on_the_brokers_own_loop() -> None:
    looked_on = []

    def look() -> BrokerMetrics:
        looked_on.append(asyncio.get_running_loop())
        return metrics()

    exporter = PrometheusExporter("127.0.0.1", 0)
    await exporter.start(look)
    try:
        await scrape(exporter)
    finally:
        await exporter.stop()
    assert set(looked_on) == {asyncio.get_running_loop()}


async def test_a_port_that_is_taken_is_named() -> None:
    first = PrometheusExporter("127.0.0.1", 0)
    await first.start(metrics)
    try:
        with pytest.raises(OSError, match=f"cannot serve metrics on 127.0.0.1:{first.port}: "):
            await PrometheusExporter("127.0.0.1", first.port).start(metrics)
    finally:
        await first.stop()


async def test_a_stopped_exporter_has_given_up_its_port() -> None:
    first = PrometheusExporter("127.0.0.1", 0)
    await first.start(metrics)
    port = first.port
    await first.stop()
    await first.stop()
    second = PrometheusExporter("127.0.0.1", port)
    await second.start(metrics)
    await second.stop()


async def test_connections_that_ask_nothing_take_few_threads_and_only_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scrape_server._Handler, "timeout", 1.0)
    exporter = PrometheusExporter("127.0.0.1", 0)
    await exporter.start(metrics)
    try:
        with ExitStack() as stack:
            idle = [stack.enter_context(socket.create_connection(("127.0.0.1", exporter.port))) for _ in range(100)]
            served, refused = idle[: scrape_server.CONNECTIONS], idle[scrape_server.CONNECTIONS :]
            for connection in refused:
                connection.settimeout(120)
                assert connection.recv(1) == b"", "one more is closed at once"
            assert await serving() <= scrape_server.CONNECTIONS
            for connection in served:
                connection.settimeout(120)
                assert connection.recv(1) == b"", "one that says nothing is closed after a while"
        await until(serving, lambda threads: threads == 0, what="end of the threads", timeout_s=120)
        assert await scrape(exporter) == {name: value for name, value in SHOWN.items() if "totaltime" not in name}
    finally:
        await exporter.stop()


async def serving() -> int:
    """Return how many threads answer, or wait for what they are asked."""
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())
