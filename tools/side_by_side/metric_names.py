"""Which metrics of groups and of the log cleaner does real Kafka have, by the names of its MBeans?

`metric-names-3.9.json` has those of one broker of Kafka 3.9 with a group, to
`python -m tools.side_by_side.metric_names`. A test holds this broker's names against them.
"""

import asyncio
import csv
import json
import subprocess
import tempfile
from pathlib import Path

from harness.broker.wire.tcp import TcpTransport
from tools.peers import KAFKA_LIBS, create_topic, running
from tools.side_by_side.group_script import TOPIC, Script

RECORDED = Path(__file__).with_name("metric-names-3.9.json")
JMX_PORT = 21_900
OBJECTS = (
    "kafka.coordinator.group:*",
    "kafka.server:type=group-coordinator-metrics",
    "kafka.server:type=DelayedOperationPurgatory,name=PurgatorySize,*",
    "kafka.log:type=LogCleaner,*",
    "kafka.log:type=LogCleanerManager,*",
)
"""What is looked at; the directories of a log cleaner are the machine's, so their names are left out."""


def exported_name(object_name: str, attribute: str) -> str:
    """Return what the JMX exporter calls an attribute by default, in small letters, with the values of its labels.

    Yammer's metrics have one value each, and its name is the attribute's; Kafka's own have many.
    """
    domain, _, properties = object_name.partition(":")
    pairs = [pair.partition("=")[::2] for pair in properties.split(",")]
    by_name = dict(pairs)
    label = [value for key, value in pairs if key not in ("type", "name", "logDirectory")]
    last = by_name.get("name", attribute)
    return " ".join(["_".join((domain, by_name["type"], last)).replace(".", "_").replace("-", "_").lower(), *label])


def names_at(pid: int) -> list[str]:
    """Return the names of what a JVM offers, in their order."""
    remote = f"jmxremote.port={JMX_PORT} jmxremote.host=127.0.0.1 jmxremote.authenticate=false jmxremote.ssl=false"
    subprocess.run(["jcmd", str(pid), "ManagementAgent.start", *remote.split()], check=True, capture_output=True)
    tool = ["java", "-cp", f"{KAFKA_LIBS}/*", "org.apache.kafka.tools.JmxTool", "--one-time", "--date-format", "'t'"]
    url = ["--jmx-url", f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{JMX_PORT}/jmxrmi"]
    objects = [option for name in OBJECTS for option in ("--object-name", name)]
    shown = subprocess.run([*tool, *url, *objects], check=True, capture_output=True, text=True).stdout
    columns = next(csv.reader(shown.splitlines()))
    return sorted({exported_name(*column.rpartition(":")[::2]) for column in columns if column != "time"})


def main() -> None:
    """Ask real Kafka, and keep what it says."""
    with (
        tempfile.TemporaryDirectory(prefix="chaos-benchmark-") as folder,
        running("kafka", Path(folder)) as peer,
    ):
        create_topic(peer, TOPIC, 1)
        host, _, port = peer.bootstrap_servers.split(",")[0].rpartition(":")
        asyncio.run(Script(TcpTransport(), host, int(port), "g").stable())
        RECORDED.write_text(json.dumps(names_at(peer.pid(0)), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
