"""Kafka's own tools, of the jars that `make kafka-libs` fetches; each call is a JVM that does little and ends."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

LIBS = Path(os.environ.get("KAFKA_LIBS") or Path(__file__).parents[1] / ".kafka-libs")
JAVA = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{LIBS}/*")
DUMPING = "Dumping "


def has_kafka() -> bool:
    """Return whether the jars are there."""
    return any(LIBS.glob("kafka_2.13-*.jar"))


needs_kafka = pytest.mark.skipif(not has_kafka(), reason="no jars of real Kafka: make kafka-libs")
takes_turns = pytest.mark.rotating(4, of="Kafka's tools")
"""For tests that start JVM after JVM; what takes one or two is tried every time."""


def kafka_tool(name: str, *arguments: str, sent: str = "") -> str:
    """Run a tool, by the name of its class, and return what it prints."""
    done = subprocess.run(
        [*JAVA, name, *arguments], input=sent, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def dumps(segments: Iterable[Path], *options: str) -> dict[Path, str]:
    """Return what Kafka reads in each of these segments, record by record; `options` name a decoder."""
    files = ",".join(map(str, segments))
    output = kafka_tool(
        "kafka.tools.DumpLogSegments", "--print-data-log", "--deep-iteration", *options, "--files", files
    )
    parts = (part.partition("\n") for part in output.split(DUMPING)[1:])
    return {Path(file): lines for file, _, lines in parts}


def payloads(dump: str) -> list[str]:
    """Return the values of all records in a dump."""
    return [line.rpartition("payload: ")[2] for line in dump.splitlines() if "payload: " in line]
