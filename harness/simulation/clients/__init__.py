"""Kafka clients under virtual time: as careful as librdkafka, recording the operations that the real ones record."""
