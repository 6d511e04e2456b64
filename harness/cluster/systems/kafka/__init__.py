"""Apache Kafka as the system under test: its releases, its jars, and what its log tells."""
