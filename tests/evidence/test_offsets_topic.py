import json
import struct

import pytest

from harness.broker.coordinator.group_records import GroupMetadata, StoredMember
from harness.broker.coordinator.records import encode_group
from harness.broker.log.batch import parse_records
from harness.evidence.offsets_topic import decode


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


OFFSET_KEY = struct.pack(">h", 1) + text("g") + text("t\u00e9") + struct.pack(">i", 3)
GROUP_KEY = struct.pack(">h", 2) + text("g")
OFFSET_NAMES = {"type": "offset", "group": "g", "topic": "t\u00e9", "partition": 3}
NULL = struct.pack(">h", -1)


@pytest.mark.parametrize(
    ("key", "value", "key_fields", "value_fields"),
    [
        pytest.param(
            OFFSET_KEY,
            struct.pack(">hqi", 3, 42, 7) + text("m") + struct.pack(">q", 99),
            OFFSET_NAMES,
            {"offset": 42, "leader_epoch": 7, "metadata": "m", "commit_timestamp_ms": 99},
            id="a committed offset of version 3 has a leader epoch",
        ),
        pytest.param(
            OFFSET_KEY,
            bytes.fromhex("0004000000000000000700000003026d000000000000006301001000000000000000010000000000000002"),
            OFFSET_NAMES,
            {"offset": 7, "leader_epoch": 3, "metadata": "m", "commit_timestamp_ms": 99},
            id="one of version 4, as Kafka 4.4.0 encodes it, has a topic id behind it",
        ),
        pytest.param(
            OFFSET_KEY,
            struct.pack(">hq", 1, 42) + text("") + struct.pack(">qq", 99, 100),
            OFFSET_NAMES,
            {"offset": 42, "leader_epoch": -1, "metadata": "", "commit_timestamp_ms": 99},
            id="one of version 1 has an expiry instead",
        ),
        pytest.param(
            GROUP_KEY,
            struct.pack(">h", 3) + text("consumer") + struct.pack(">i", 5) + NULL + text("member-1"),
            {"type": "group", "group": "g"},
            {"protocol_type": "consumer", "generation": 5, "protocol": None, "leader": "member-1"},
            id="a group's metadata",
        ),
        pytest.param(OFFSET_KEY, None, OFFSET_NAMES, None, id="a tombstone's value is empty"),
    ],
)
def test_records_become_json(
    key: bytes, value: bytes | None, key_fields: dict[str, object], value_fields: dict[str, object] | None
) -> None:
    decoded = decode(key, value)
    assert decoded is not None
    assert json.loads(decoded[0]) == key_fields
    assert (json.loads(decoded[1]) if decoded[1] else None) == value_fields


def test_what_our_coordinator_stores_of_a_group_is_read_by_this_parser_too() -> None:
    member = StoredMember(
        member_id="m",
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=1,
        session_timeout_ms=2,
        subscription=b"\xff",
        assignment=b"",
    )
    group = GroupMetadata(
        protocol_type="consumer", generation=4, protocol="range", leader="m", state_since_ms=5, members=(member,)
    )
    (record,) = parse_records(encode_group("g", group, 5))
    decoded = decode(record.key, record.value)
    assert decoded is not None
    assert json.loads(decoded[0]) == {"type": "group", "group": "g"}
    assert json.loads(decoded[1]) == {"protocol_type": "consumer", "generation": 4, "protocol": "range", "leader": "m"}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(None, b"x", id="no key"),
        pytest.param(b"", b"x", id="an empty key"),
        pytest.param(struct.pack(">h", 9), b"", id="a key of an unknown version"),
        pytest.param(OFFSET_KEY[:-1], None, id="a key that ends too early"),
        pytest.param(OFFSET_KEY, struct.pack(">h", 9), id="a value of an unknown version"),
        pytest.param(OFFSET_KEY, struct.pack(">hqih", 3, 42, 7, 5), id="a text longer than the value"),
        pytest.param(struct.pack(">hh", 2, 1) + b"\xff", None, id="a name that is no UTF-8"),
    ],
)
def test_what_no_coordinator_writes_is_not_decoded(key: bytes | None, value: bytes | None) -> None:
    assert decode(key, value) is None
