"""What the metadata log says of a cluster, as changes of znodes."""

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from harness.kraft import records as untyped_records
from harness.kraft.image import MetadataImage
from harness.kraft.records import Bound, LeaderChange, MetadataEntry

records: Any = untyped_records
"""kafka-python gives its classes their fields when they are made."""
TOPIC = UUID(int=7)
FIRST, SECOND = UUID(int=(1 << 64) + 0xA), UUID(int=0xB)
STATE = "/brokers/topics/orders/partitions/0/state"
BROKER = "/brokers/ids/1"


def register(incarnation: UUID = FIRST, epoch: int = 4) -> Any:
    return records.RegisterBrokerRecord(broker_id=1, incarnation_id=incarnation, broker_epoch=epoch, fenced=True)


def fence(fenced: int) -> Any:
    return records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=4, fenced=fenced)


def topic() -> Any:
    return records.TopicRecord(name="orders", topic_id=TOPIC)


def partition(**changed: object) -> Any:
    values: dict[str, object] = {
        "replicas": [1, 2],
        "isr": [1, 2],
        "leader": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return records.PartitionRecord(partition_id=0, topic_id=TOPIC, **(values | changed))


def change(**changed: object) -> Any:
    return records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC, **changed)


def config(value: str | None) -> Any:
    return records.ConfigRecord(resource_type=2, resource_name="orders", name="p", value=value)


def applied(image: MetadataImage, written: Sequence[object], epoch: int = 3) -> list[tuple[str, str, int]]:
    """Return type, path and version of every change, of records from offset 0 on."""
    entries = [MetadataEntry(offset=at, epoch=epoch, time_ms=at, record=record) for at, record in enumerate(written)]
    return [(each.type, each.path, each.version) for each in image.apply(entries)]


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        pytest.param([register()], [("create", 0)], id="a process that registers"),
        pytest.param([register(), register()], [("create", 0)], id="one that does so again"),
        pytest.param([register(), fence(-1)], [("create", 0)], id="one that is unfenced"),
        pytest.param([register(), fence(0), fence(1)], [("create", 0)], id="one that was never unfenced"),
        pytest.param([register(), fence(-1), fence(1)], [("create", 0), ("delete", -1)], id="one that is fenced"),
        pytest.param(
            [register(), fence(-1), fence(1), fence(1)], [("create", 0), ("delete", -1)], id="one that is fenced twice"
        ),
        pytest.param(
            [register(), fence(-1), fence(1), fence(-1)],
            [("create", 0), ("delete", -1), ("create", 0)],
            id="one that comes back from a pause",
        ),
        pytest.param(
            [register(), fence(-1), register(SECOND, 9)],
            [("create", 0), ("delete", -1), ("create", 0)],
            id="another process of the same broker",
        ),
        pytest.param(
            [register(), records.UnregisterBrokerRecord(broker_id=1, broker_epoch=4)],
            [("create", 0), ("delete", -1)],
            id="a broker that is no part of the cluster any more",
        ),
        pytest.param(
            [register(), records.UnfenceBrokerRecord(id=1, epoch=4), records.FenceBrokerRecord(id=1, epoch=4)],
            [("create", 0), ("delete", -1)],
            id="fencing as it was written at first",
        ),
        pytest.param([fence(1)], [], id="a broker of which nothing is known"),
    ],
)
def test_a_broker_is_registered_until_it_is_fenced(written: list[object], seen: list[tuple[str, int]]) -> None:
    changes = applied(MetadataImage(), written)
    assert [(type_, version) for type_, path, version in changes if path == BROKER] == seen


def test_only_brokers_that_are_not_fenced_live() -> None:
    image = MetadataImage()
    applied(image, [register()])
    assert image.registrations == {}
    applied(image, [fence(-1)])
    assert (image.registrations[1].czxid, image.registrations[1].session) == (4, "0xa")
    applied(image, [fence(1)])
    assert image.registrations == {}


@pytest.mark.parametrize(
    ("changed", "seen"),
    [
        pytest.param({"isr": [1]}, {"isr": [1], "leader": 1, "leader_epoch": 0}, id="the ISR shrinks"),
        pytest.param({"leader": 2, "isr": [2]}, {"isr": [2], "leader": 2, "leader_epoch": 1}, id="another one leads"),
        pytest.param({"leader": 1}, {"leader": 1, "leader_epoch": 1}, id="the same one leads in a new epoch"),
        pytest.param({"leader": -1, "isr": []}, {"leader": -1, "isr": [], "leader_epoch": 1}, id="no leader"),
        pytest.param(
            {"eligible_leader_replicas": [2], "isr": [1]}, {"isr": [1], "eligible": [2]}, id="one may still lead"
        ),
        pytest.param(
            {"leader": -1, "isr": [], "eligible_leader_replicas": [], "last_known_elr": [1]},
            {"leader": -1, "isr": [], "eligible": [], "last_known": [1]},
            id="no leader, and the last one is kept",
        ),
        pytest.param({}, {"isr": [1, 2], "leader": 1, "eligible": [], "last_known": []}, id="what is not named stays"),
    ],
)
def test_a_change_of_a_partition_is_a_version_of_its_state(changed: dict[str, object], seen: dict[str, object]) -> None:
    image = MetadataImage()
    entries = [
        MetadataEntry(offset=at, epoch=3, time_ms=0, record=record)
        for at, record in enumerate([topic(), partition(), change(**changed)])
    ]
    last = [each for each in image.apply(entries) if each.path == STATE][-1]
    state = json.loads(last.data)
    assert (last.zxid, last.type, last.version, state["controller_epoch"]) == (2, "set", 1, 3)
    assert {name: state[name] for name in seen} == seen


@pytest.mark.parametrize(
    ("cleared", "versions"),
    [
        pytest.param(["orders"], [0, 1, 2, 3], id="of this topic"),
        pytest.param([""], [0, 1, 2, 3], id="of all"),
        pytest.param(["orders", "orders"], [0, 1, 2, 3], id="once, and then there is nothing to clear"),
        pytest.param(["others"], [0, 1, 2], id="of another topic"),
    ],
)
@pytest.mark.parametrize("kind", ["eligible_leader_replicas", "last_known_elr"])
def test_clearing_eligible_replicas_is_a_version(kind: str, cleared: list[str], versions: list[int]) -> None:
    clear = [records.ClearElrRecord(topic_name=name) for name in cleared]
    written = [topic(), partition(), change(isr=[1], **{kind: [2]}), *clear, change(isr=[1, 2])]
    seen = applied(MetadataImage(), written)
    assert [version for _, path, version in seen if path == STATE] == versions


def test_a_topic_comes_with_its_assignment_and_goes_with_all_of_it() -> None:
    image = MetadataImage()
    created = applied(image, [topic(), config("1"), partition(), change(replicas=[1, 2, 3])])
    assert created == [
        ("create", "/config/topics/orders", 0),
        ("create", "/brokers/topics/orders", 0),
        ("set", "/config/topics/orders", 1),
        ("set", "/brokers/topics/orders", 1),
        ("create", STATE, 0),
        ("set", "/brokers/topics/orders", 2),
        ("set", STATE, 1),
    ]
    assert image.partitions["orders", 0].view.assignment == (1, 2, 3)
    assert applied(image, [records.RemoveTopicRecord(topic_id=TOPIC)]) == [
        ("delete", STATE, -1),
        ("delete", "/brokers/topics/orders", -1),
        ("delete", "/config/topics/orders", -1),
    ]
    assert not image.partitions
    assert not image.topics


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        pytest.param([config("1"), config(None)], {}, id="a property that was taken back"),
        pytest.param([config("1"), config("2")], {"p": "2"}, id="the last value counts"),
        pytest.param(
            [records.ConfigRecord(resource_type=4, resource_name="orders", name="p", value="1")],
            {},
            id="a broker's property of that name is no topic's",
        ),
    ],
)
def test_a_topic_has_its_own_configuration(written: list[object], seen: dict[str, str]) -> None:
    image = MetadataImage()
    entries = [
        MetadataEntry(offset=at, epoch=1, time_ms=0, record=record) for at, record in enumerate([topic(), *written])
    ]
    last = [each for each in image.apply(entries) if each.path == "/config/topics/orders"][-1]
    assert json.loads(last.data)["config"] == seen


@pytest.mark.parametrize(
    ("written", "there"),
    [
        pytest.param([Bound.BEGIN, topic()], False, id="before its end"),
        pytest.param([Bound.BEGIN, topic(), Bound.END], True, id="after its end"),
        pytest.param([Bound.BEGIN, topic(), Bound.ABORT], False, id="after it was given up"),
        pytest.param([Bound.BEGIN, topic(), LeaderChange(2), Bound.END], False, id="after another one took over"),
    ],
)
def test_a_transaction_counts_as_a_whole(written: list[object], there: bool) -> None:
    image = MetadataImage()
    applied(image, written)
    assert ("orders" in image.topics) is there


def test_a_leader_of_the_quorum_is_the_controller() -> None:
    image = MetadataImage()
    assert applied(image, [LeaderChange(2)], epoch=5) == [
        ("create", "/controller_epoch", 0),
        ("create", "/controller", 0),
    ]
    assert (image.controller.broker_id, image.controller.controller_epoch) == (2, 5)
    assert applied(image, [LeaderChange(0)], epoch=6) == [
        ("set", "/controller_epoch", 1),
        ("delete", "/controller", -1),
        ("create", "/controller", 0),
    ]


def test_producer_ids_are_claimed_by_the_block() -> None:
    (claimed,) = MetadataImage().apply(
        [
            MetadataEntry(
                offset=8, epoch=1, time_ms=0, record=records.ProducerIdsRecord(broker_id=1, next_producer_id=3000)
            )
        ]
    )
    assert json.loads(claimed.data) == {"version": 1, "broker": 1, "block_start": "2000", "block_end": "2999"}
