"""Specs of messages that kafka-python ships none of, in the JSON form that Kafka describes its messages in."""
