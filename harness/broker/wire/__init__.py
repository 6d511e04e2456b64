"""Kafka's wire protocol: framing, codecs (kafka-python's, behind one module), serving and calling."""
