from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.broker.handlers.apis import APIS
from harness.broker.wire.messages import FetchRequest, ProduceRequest

MESSAGES = [message for api in APIS.values() for message in (api.request, api.response)]


def containers(container: Any) -> Iterator[Any]:
    """Yield a class and the classes of all that it holds."""
    yield container
    for field in container._struct.fields.values():
        if field.is_struct() or field.is_struct_array():
            yield from containers(field.data_class)


def as_the_package_does(container: Any, **values: Any) -> Any:
    made = object.__new__(container)
    super(container, made).__init__(**values)
    return made


@pytest.mark.parametrize("message_class", [pytest.param(message, id=message.name) for message in MESSAGES])
def test_a_generated_constructor_fills_the_slots_that_the_packages_own_fills(message_class: Any) -> None:
    for container in containers(message_class):
        fields = container._struct.fields
        for values in ({}, {name: f"value of {name}" for name in fields}, dict.fromkeys(list(fields)[::2], 7)):
            ours, theirs = container(**values), as_the_package_does(container, **values)
            for name in ("_version", "tags", "unknown_tags", *fields):
                assert getattr(ours, name) == getattr(theirs, name), (container, name)


@pytest.mark.parametrize("message_class", [pytest.param(message, id=message.name) for message in MESSAGES])
def test_what_is_not_given_is_encoded_as_its_default_in_every_version(message_class: Any) -> None:
    for version in range(message_class.max_version + 1):
        assert message_class().encode(version) == as_the_package_does(message_class).encode(version)


def test_a_tagged_field_is_encoded_when_it_is_given_and_only_then() -> None:
    request: Any = FetchRequest(cluster_id="a cluster")
    plain: Any = FetchRequest()
    assert request.tags == {"cluster_id"}
    assert b"a cluster" in bytes(request.encode(12))
    assert plain.tags is None


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: FetchRequest[4](1, 2, version=4), id="by position, in a version"),
        pytest.param(lambda: FetchRequest("a", 1, max_wait_ms=2), id="by position and by name"),
        pytest.param(lambda: FetchRequest(version=4, replica_id=1, max_wait_ms=2, cluster_id="a"), id="in a version"),
        pytest.param(lambda: FetchRequest(replica_id=1, max_wait_ms=2, max_version=4), id="in a range of versions"),
    ],
)
def test_what_the_packages_client_does_is_done_by_its_own_constructor(made: Callable[[], FetchRequest]) -> None:
    request = made()
    assert (request.replica_id, request.max_wait_ms) == (1, 2)


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="acknowledgements"):
        ProduceRequest(acknowledgements=1)
