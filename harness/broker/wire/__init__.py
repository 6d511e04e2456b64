"""Kafka's wire protocol: framing, codecs (kafka-python's, behind one module), serving and calling."""

from harness.broker.wire import kafka_package

kafka_package.stand_in()
