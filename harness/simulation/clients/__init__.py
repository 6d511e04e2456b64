"""Kafka clients under virtual time: the rules of `harness.client_rules`, and as much of librdkafka as they need."""
