"""The transactional cases of kafka-python's own tests, on this broker and on Kafka 3.9.1, which must come to the same.

They are those of its `test/integration/test_producer_integration.py`, whose source distribution lacks what starts them.
"""

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tests.integration.transactional_peers import Peer, peer, topic

__all__ = ["peer", "topic"]

pytestmark = [pytest.mark.cluster, pytest.mark.rotating(1)]

PATIENCE_S = 120


@pytest.fixture
def producer(peer: Peer, topic: str) -> KafkaProducer:
    """A transactional producer whose session has begun."""
    producer = KafkaProducer(bootstrap_servers=peer.bootstrap_servers, transactional_id=topic)
    producer.init_transactions()
    return producer


def test_an_aborted_transaction_is_followed_by_a_committed_one(peer: Peer, topic: str, producer: KafkaProducer) -> None:
    for values, commit in (((b"1", b"2"), False), ((b"3", b"4"), True)):
        producer.begin_transaction()
        for value in values:
            producer.send(topic, value, partition=0).get(PATIENCE_S)
        if commit:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    consumer = KafkaConsumer(
        bootstrap_servers=peer.bootstrap_servers,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        consumer_timeout_ms=PATIENCE_S * 1000,
    )
    try:
        consumer.assign([TopicPartition(topic, 0)])
        assert [next(consumer).value for _ in range(2)] == [b"3", b"4"]
    finally:
        consumer.close()
        producer.close()


def test_offsets_with_metadata_are_committed_and_those_of_an_aborted_transaction_are_not(
    peer: Peer, topic: str, producer: KafkaProducer
) -> None:
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    offset = OffsetAndMetadata(0, "metadata", 0)
    producer.begin_transaction()
    producer.send(topic, b"1", partition=0).get(PATIENCE_S)
    producer.send_offsets_to_transaction({first: offset}, topic)
    producer.commit_transaction()
    producer.begin_transaction()
    producer.send_offsets_to_transaction({second: OffsetAndMetadata(1, "bad", 1)}, topic)
    producer.abort_transaction()
    producer.close()
    admin = KafkaAdminClient(bootstrap_servers=peer.bootstrap_servers)
    try:
        assert admin.list_group_offsets(topic) == {topic: {first: offset}}
    finally:
        admin.close()
