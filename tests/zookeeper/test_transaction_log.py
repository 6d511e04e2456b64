import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import RolledBackError

from harness.errors import EvidenceError
from harness.store.history import ZnodeChange
from harness.zookeeper.sessions import to_text
from harness.zookeeper.transaction_log import read_ensemble_log, read_transaction_log

HEADER = b"ZKLG" + struct.pack(">iq", 2, 0)
ZEROS = bytes(4096)


def text(value: str) -> bytes:
    return struct.pack(">i", len(value)) + value.encode()


def entry(zxid: int, op: int, body: bytes) -> bytes:
    data = struct.pack(">qiqqi", 0xA, 1, zxid, 1000 + zxid, op) + body
    return struct.pack(">qi", zlib.adler32(data), len(data)) + data + b"B"


def set_data(zxid: int, version: int) -> bytes:
    return entry(zxid, 5, text("/a") + text("x,\n") + struct.pack(">i", version))


def write_log(folder: Path, *files: bytes) -> Path:
    (folder / "version-2").mkdir(parents=True)
    for number, data in enumerate(files, start=9):
        (folder / "version-2" / f"log.{number:x}").write_bytes(data)
    return folder


def versions(folder: Path) -> list[int]:
    return [change.version for change in read_transaction_log(folder).changes]


def test_a_set_has_all_that_the_log_says(tmp_path: Path) -> None:
    (change,) = read_transaction_log(write_log(tmp_path, HEADER + set_data(3, 4) + ZEROS)).changes
    assert change == ZnodeChange(
        zxid=3,
        time_ms=1003,
        type="set",
        path="/a",
        data="x,\n",
        version=4,
        session="0xa",
        ephemeral_owner="",
        source="transaction_log",
    )


def test_files_are_read_in_the_order_of_their_hexadecimal_names(tmp_path: Path) -> None:
    assert versions(write_log(tmp_path, HEADER + set_data(9, 1), HEADER + set_data(10, 2))) == [1, 2]


@pytest.mark.parametrize(
    ("tail", "damage"),
    [
        pytest.param(ZEROS, "", id="zeros that fill the file end it"),
        pytest.param(b"", "", id="a file that ends after a transaction is whole"),
        pytest.param(set_data(2, 2)[:-5], "half written at byte 78", id="half a transaction ends the reading"),
        pytest.param(set_data(2, 2)[:-1] + b"C", "half written at byte 78", id="a wrong end of record is damage"),
        pytest.param(b"\1" + set_data(2, 2)[1:], "half written at byte 78", id="a wrong checksum is damage"),
    ],
)
def test_reading_stops_at_the_first_damage(tmp_path: Path, tail: bytes, damage: str) -> None:
    log = read_transaction_log(write_log(tmp_path, HEADER + set_data(1, 1) + tail))
    assert [change.version for change in log.changes] == [1]
    assert damage in log.damage
    assert bool(damage) == bool(log.damage)


def test_a_file_that_is_no_log_is_damage(tmp_path: Path) -> None:
    assert "does not begin with" in read_transaction_log(write_log(tmp_path, b"something else")).damage


def test_no_log_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match="no transaction log"):
        read_transaction_log(tmp_path)


@pytest.mark.cluster
def test_every_change_of_a_real_server_is_there(client: KazooClient, server: Any) -> None:
    other = KazooClient(hosts=server.hosts)
    other.start()
    own, others = to_text(client.client_id[0]), to_text(other.client_id[0])
    client.create("/log", None)
    for value in (b"one", b"two, and\n\x00three", "\u00e9".encode()):
        client.set("/log", value)
    other.create("/log/e-", b"mine", ephemeral=True, sequence=True)
    multi = client.transaction()
    multi.check("/log", 3)
    multi.create("/log/m")
    multi.set_data("/log/m", b"in one go", 0)
    multi.delete("/log/m", 1)
    multi.commit()
    failing = client.transaction()
    failing.set_data("/log", b"never")
    failing.delete("/log", 99)
    assert isinstance(failing.commit()[0], RolledBackError)
    other.stop()
    other.close()
    client.delete("/log")

    log = read_transaction_log(server.data_dir)

    changes = [change for change in log.changes if change.path.startswith("/log")]
    assert log.damage == ""
    assert [
        (change.type, change.path, change.data, change.version, change.session, change.ephemeral_owner)
        for change in changes
    ] == [
        ("create", "/log", "", 0, own, ""),
        ("set", "/log", "one", 1, own, ""),
        ("set", "/log", "two, and\n\x00three", 2, own, ""),
        ("set", "/log", "\u00e9", 3, own, ""),
        ("create", "/log/e-0000000000", "mine", 0, others, others),
        ("create", "/log/m", "", 0, own, ""),
        ("set", "/log/m", "in one go", 1, own, ""),
        ("delete", "/log/m", "", -1, own, ""),
        ("delete", "/log/e-0000000000", "", -1, others, others),
        ("delete", "/log", "", -1, own, ""),
    ]
    assert len({change.zxid for change in changes}) == len(changes) - 2


def test_the_logs_of_an_ensemble_make_one_though_one_began_late_and_one_ended_early(tmp_path: Path) -> None:
    late = write_log(tmp_path / "late", HEADER + set_data(3, 3) + set_data(4, 4) + ZEROS)
    early = write_log(tmp_path / "early", HEADER + set_data(1, 1) + set_data(2, 2) + set_data(3, 3) + ZEROS)
    log = read_ensemble_log([late, early])
    assert [(change.zxid, change.version) for change in log.changes] == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert log.damage == ""


def test_servers_that_disagree_are_named_and_the_longest_log_decides(tmp_path: Path) -> None:
    long = write_log(tmp_path / "long", HEADER + set_data(1, 1) + set_data(2, 2) + ZEROS)
    other = write_log(tmp_path / "other", HEADER + set_data(2, 9) + ZEROS)
    log = read_ensemble_log([other, long])
    assert [change.version for change in log.changes] == [1, 2]
    assert log.damage == "the ZooKeeper servers disagree about zxid 2"


def test_a_server_without_a_log_is_a_remark_unless_none_has_one(tmp_path: Path) -> None:
    one = write_log(tmp_path / "one", HEADER + set_data(1, 1) + ZEROS)
    log = read_ensemble_log([tmp_path / "nowhere", one])
    assert len(log.changes) == 1
    assert "no transaction log in" in log.damage
    with pytest.raises(EvidenceError, match="no transaction log"):
        read_ensemble_log([tmp_path / "nowhere"])
