"""A row of the table of APIs fits together: request, response and handler are of one API."""

import pytest
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from harness.broker.administration.producer_ids import ProducerIds
from harness.broker.handlers.apis import APIS, bound
from harness.broker.handlers.producer_ids import ProducerIdHandlers
from harness.broker.wire.dispatch import Api
from harness.broker.wire.messages import RESPONSES, ApiKey
from tests.raising import raising

BELOW_TOPIC_IDS = {ApiKey.FETCH: 12, ApiKey.METADATA: 9, ApiKey.CREATE_TOPICS: 6, ApiKey.DELETE_TOPICS: 5}
BETWEEN_BROKERS = {ApiKey.LEADER_AND_ISR: 4, ApiKey.STOP_REPLICA: 3, ApiKey.UPDATE_METADATA: 6}
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


def test_every_known_api_has_a_row() -> None:
    assert APIS.keys() == set(ApiKey)


def test_an_object_serves_the_apis_of_its_own_methods_only() -> None:
    handlers = bound(ProducerIdHandlers(ProducerIds(broker_id=1, zookeeper=raising(AssertionError()))))
    assert list(handlers) == [ApiKey.INIT_PRODUCER_ID]
