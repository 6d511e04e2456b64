"""A row of the table of APIs fits together: request, response and handler are of one API."""

import json
from pathlib import Path

import pytest
from kafka.protocol.api_key import ApiKey as KafkaApi
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.handlers.apis import APIS, bound
from harness.broker.handlers.producer_ids import ProducerIdHandlers
from harness.broker.wire.dispatch import Api
from harness.broker.wire.messages import RESPONSES, ApiKey
from tests.broker.transactions.coordinating import Coordinating
from tests.raising import raising

ROOT = Path(__file__).parents[3]
OF_TRANSACTIONS = {24, 25, 26, 28, 65, 66}

BELOW_TOPIC_IDS = {ApiKey.FETCH: 12, ApiKey.METADATA: 9, ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5}
BETWEEN_BROKERS = {ApiKey.LEADER_AND_ISR: 4, ApiKey.STOP_REPLICA: 3, ApiKey.UPDATE_METADATA: 6}
EARLIER = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_LOG_DIRS}
"""Their first messages are of Kafka 4; these are advertised from 0 on."""
FIRST = dict.fromkeys(EARLIER | BETWEEN_BROKERS.keys(), 0) | {ApiKey.CONTROLLED_SHUTDOWN: 1}
LAST = {key: last for key, (_, last) in BROKER_API_VERSIONS[3, 9].items()} | BELOW_TOPIC_IDS | BETWEEN_BROKERS


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_a_request_is_answered_with_the_response_of_its_own_api(api: Api) -> None:
    assert api.request.API_KEY == api.response.API_KEY == api.key
    assert RESPONSES[api.key] is api.response
    assert api.handler.__annotations__["request"] is api.request
    assert api.handler.__annotations__["return"] in (api.response, api.response | None)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_what_is_served_is_advertised_and_known_to_the_codec(api: Api) -> None:
    assert api.versions.advertised_min <= api.versions.served_min <= api.versions.max
    assert api.versions.max <= min(api.request.max_version, api.response.max_version)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_the_last_version_is_that_of_kafka_3_9_or_the_last_one_without_topic_ids(api: Api) -> None:
    assert api.versions.max == LAST[api.key]


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.key.name)
def test_the_first_version_is_that_of_the_messages_or_an_earlier_one_that_clients_look_for(api: Api) -> None:
    assert api.versions.advertised_min == FIRST.get(api.key, api.request.valid_versions[0])


def test_each_api_that_kafka_advertises_and_this_broker_does_not_is_a_documented_difference() -> None:
    """The APIs of a real broker of 3.9.1 in ZooKeeper mode, without those of the transaction coordinator."""
    of_kafka = {int(key) for key in json.loads((Path(__file__).parent / "apis-3.9.1.json").read_text())}
    page = (ROOT / "docs/explanation/differences-from-kafka.md").read_text(encoding="utf-8")
    missing = [KafkaApi(key).name for key in sorted(of_kafka - APIS.keys() - OF_TRANSACTIONS)]
    assert [name for name in missing if name not in page] == []


def test_every_known_api_has_a_row() -> None:
    assert APIS.keys() == set(ApiKey)


def test_an_object_serves_the_apis_of_its_own_methods_only() -> None:
    handlers = bound(
        ProducerIdHandlers(ProducerIds(broker_id=1, zookeeper=raising(AssertionError())), Coordinating().coordinator)
    )
    assert list(handlers) == [ApiKey.INIT_PRODUCER_ID]
