from collections.abc import Mapping

import pytest

from harness.cluster.inherited_properties import stated_defaults

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    ("brokers", "stated"),
    [
        pytest.param({}, "", id="nothing is known"),
        pytest.param(
            {"log.cleanup.policy": "delete, compact", "message.max.bytes": " 9 ", "listeners": "PLAINTEXT://h:1"},
            "cleanup.policy=compact,delete;max.message.bytes=9",
            id="what topics inherit, by their names for it",
        ),
        pytest.param(
            {"log.retention.ms": "", "log.retention.minutes": "2", "log.retention.hours": "168"},
            "retention.ms=120000",
            id="minutes come before hours",
        ),
        pytest.param({"log.retention.ms": "-1", "log.retention.hours": "1"}, "retention.ms=-1", id="and first is ms"),
        pytest.param({"log.retention.hours": "many"}, "", id="what is no number is not known"),
    ],
)
def test_what_topics_inherit(brokers: Mapping[str, str], stated: str) -> None:
    assert stated_defaults(brokers) == stated
