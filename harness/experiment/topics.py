"""Creates the topics of a run, through the load's client library."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from harness.errors import ClusterError
from harness.kafka.security.settings import for_librdkafka
from harness.scenario.model import TopicSpec

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 10.0


class TopicAdmin:
    """An admin client of one cluster, which may be shared with others."""

    def __init__(
        self, bootstrap_servers: str, *, shared: bool = False, client: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Raises ClusterError when the client settings `client` cannot be used."""
        self._shared = shared
        self._requested: set[str] = set()
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap_servers,
                "client.id": "harness",
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 500,
                **for_librdkafka(client),
            },
            logger=log,
        )

    async def create(self, topics: Sequence[TopicSpec], *, validate_only: bool = False) -> dict[str, str]:
        """Try once to create topics, or only validate that; return the problem of each that failed.

        Raises:
            ClusterError: on a shared cluster a topic existed before this run created it.
        """
        return await asyncio.to_thread(self._create, topics, validate_only)

    def _create(self, topics: Sequence[TopicSpec], validate_only: bool) -> dict[str, str]:
        requests = [
            NewTopic(topic.name, num_partitions=topic.partitions, config=dict(topic.config), **_replicas(topic))
            for topic in topics
        ]
        answers = self._client.create_topics(
            requests,
            operation_timeout=REQUEST_TIMEOUT_S,
            request_timeout=REQUEST_TIMEOUT_S,
            validate_only=validate_only,
        )
        problems = problems_of(answers, theirs=set(answers) - self._requested if self._shared else set())
        self._requested.update(answers)
        return problems


def problems_of(answers: Mapping[str, "Future[None]"], theirs: set[str]) -> dict[str, str]:
    """Return the problem of each topic that does not exist; one that exists is fine, unless it is `theirs`.

    Raises:
        ClusterError: one of those exists.
    """
    problems = {}
    for name, answer in answers.items():
        try:
            answer.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                problems[name] = error.args[0].str()
            elif name in theirs:
                raise ClusterError(f"the topic {name} exists already, and this run did not create it") from error
    return problems


def _replicas(topic: TopicSpec) -> dict[str, Any]:
    if not topic.replicas:
        return {"replication_factor": topic.replication_factor}
    return {"replica_assignment": [list(map(int, topic.replicas))] * topic.partitions}
