"""Creates the topics of a run, through the client library that the load uses too."""

import asyncio
import logging
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.errors import ClusterError
from harness.scenario.model import TopicSpec

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 10.0
RETRY_PAUSE_S = 0.2


async def create_topics(bootstrap_servers: str, topics: Sequence[TopicSpec], *, timeout_s: float) -> None:
    """Create every topic that is not there.

    Raises:
        ClusterError: the cluster refused one, or did not answer in time; says which and why.
    """
    client = AdminClient(
        {
            "bootstrap.servers": bootstrap_servers,
            "client.id": "harness",
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 500,
        },
        logger=log,
    )
    deadline_s = time.monotonic() + timeout_s
    remaining = list(topics)
    while True:
        problems = await asyncio.to_thread(_create, client, remaining)
        remaining = [topic for topic in remaining if topic.name in problems]
        if not remaining:
            return
        if time.monotonic() >= deadline_s:
            raise ClusterError("; ".join(f"topic {name} was not created: {why}" for name, why in problems.items()))
        await asyncio.sleep(RETRY_PAUSE_S)


def _create(client: AdminClient, topics: Sequence[TopicSpec]) -> dict[str, str]:
    """Try once; return what was wrong with each topic that is not there now."""
    wanted = [
        NewTopic(
            topic.name,
            num_partitions=topic.partitions,
            replication_factor=topic.replication_factor,
            config=dict(topic.config),
        )
        for topic in topics
    ]
    problems = {}
    answers = client.create_topics(wanted, operation_timeout=REQUEST_TIMEOUT_S, request_timeout=REQUEST_TIMEOUT_S)
    for name, answer in answers.items():
        try:
            answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                problems[name] = error.args[0].str()
    return problems
