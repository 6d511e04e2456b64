"""What does a test of an application wait for and hold in memory, with this project's brokers and with a mock?

`python -m benchmarks.application_tests` starts each, writes one record with acks=all to a topic of three replicas, and
looks at the memory of every process that belongs to it. librdkafka's mock cluster lives in the client's process; its
memory is that of a process with it, less that of one with the client alone. testcontainers starts the same Kafka in
containers of images from the network, and is not measured.
"""

import argparse
import os
import time
from collections.abc import Mapping
from multiprocessing.connection import Connection

import psutil
from confluent_kafka import Producer
from rich.console import Console

from benchmarks.measuring import in_own_process, table_of_columns
from kafka_chaos.api import Cluster
from tools.results.rows import record

MIB = 1 << 20
FIGURES = ("other.application_first_record_s", "other.application_mib")
OF_KAFKA = ("other.application_kafka_first_record_s", "other.application_kafka_mib")
COLUMNS = ("first record, s", "memory of all processes, MiB")


def write(configuration: Mapping[str, str | int], topic: str) -> None:
    """Write a record, and return when all replicas have it."""
    errors: list[object] = []
    producer = Producer({"acks": "all", **configuration})
    producer.produce(topic, b"first", on_delivery=lambda error, _: errors.append(error))
    producer.flush(60)
    assert errors == [None], errors


def of_cluster(system: str, answer: "Connection") -> None:
    """Send the seconds until a record is written on three brokers, and their memory."""
    began_s = time.monotonic()
    with Cluster(brokers=3, system=system) as cluster:
        cluster.create_topic("first", partitions=1, replication_factor=3)
        write({"bootstrap.servers": cluster.bootstrap_servers}, "first")
        took_s = time.monotonic() - began_s
        status = cluster.status()
        pids = [broker.pid for broker in status.brokers] + [server.pid for server in status.zookeeper]
        servers = [psutil.Process(pid) for pid in pids if pid]
        supervisor = servers[0].parent()
        every = {each.pid: each for each in servers}
        if supervisor is not None and supervisor.pid != os.getpid():
            below: list[psutil.Process] = [supervisor, *supervisor.children(recursive=True)]
            every |= {each.pid: each for each in below}
        answer.send((took_s, sum(each.memory_info().rss for each in every.values()) / MIB))


def of_mock(_system: str, answer: "Connection") -> None:
    """Send the same for librdkafka's mock cluster of three brokers."""
    own = psutil.Process()
    before = own.memory_info().rss
    began_s = time.monotonic()
    write({"test.mock.num.brokers": 3}, "first")
    answer.send((time.monotonic() - began_s, (own.memory_info().rss - before) / MIB))


def main() -> None:
    """Measure, print, and record if asked to."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.application_tests", description=__doc__)
    parser.add_argument("--record", action="store_true", help="append the figures to results/measurements.json")
    parser.add_argument("--kafka", metavar="RELEASE", default="4.4.0", help="of Apache Kafka, for the third row")
    arguments = parser.parse_args()
    original = f"kafka:{arguments.kafka}"
    measured = {system: in_own_process(of_cluster, system)[0] for system in ("python", original)}
    measured["librdkafka's mock"] = in_own_process(of_mock, "")[0]
    columns = [
        {"": name, COLUMNS[0]: f"{took_s:.2f}", COLUMNS[1]: f"{mib:.0f}"} for name, (took_s, mib) in measured.items()
    ]
    Console().print(table_of_columns("Tests of applications", columns))
    if arguments.record:
        figures = dict(zip((*FIGURES, *OF_KAFKA), (*measured["python"], *measured[original]), strict=True))
        peers = dict(zip(FIGURES, measured["librdkafka's mock"], strict=True))
        record("benchmarks.application_tests", figures, peers)


if __name__ == "__main__":
    main()
