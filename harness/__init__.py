"""A chaos-testing harness for Kafka-style brokers: mechanism only; content lives in `plugins` and `expectations`."""
