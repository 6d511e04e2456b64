"""librdkafka's errors as operations have them."""

from confluent_kafka import KafkaError


def described(error: KafkaError) -> str:
    """Return name and message of an error."""
    return f"{error.name()}: {error.str()}"
