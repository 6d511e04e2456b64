"""Apache Kafka as the system under test: its releases, its jars, and what its log tells."""

from harness.cluster.systems.kafka.system import ApacheKafka
from harness.cluster.systems.system import System

SYSTEM: type[System] = ApacheKafka
