"""Specs of the messages between brokers (API keys 4 to 7), in the JSON form that Kafka describes its messages in."""
