"""What a quorum decided, by the metadata logs that three controllers of a real Kafka 4.4.0 left after a smoke run."""

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.log.batch import build_batch, seal
from harness.broker.log.records import Record
from harness.errors import EvidenceError
from harness.kraft.metadata_log import FOLDER, read_quorum_log
from harness.kraft.records import entries

LOGS = Path(__file__).parent / "logs"
SEGMENT = f"{FOLDER}/00000000000000000000.log"


@pytest.fixture
def voters(tmp_path: Path) -> list[Path]:
    """The data directories of three controllers, to be damaged."""
    shutil.copytree(LOGS, tmp_path / "logs")
    return sorted((tmp_path / "logs").iterdir())


def batch_end(data: bytes | bytearray, start: int) -> int:
    """Return where the batch ends that starts there."""
    return start + int.from_bytes(data[start + 8 : start + 12], "big") + 12


def cut_to(folder: Path, offset: int) -> None:
    """Cut a log before the first batch that reaches an offset."""
    data = (folder / SEGMENT).read_bytes()
    end = 0
    for batch in entries(data):
        if batch[-1].offset >= offset:
            break
        end = batch_end(data, end)
    (folder / SEGMENT).write_bytes(data[:end])


def flipped(data: bytes, position: int) -> bytes:
    """Return the bytes with a bit of one of them changed."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def without_batch(data: bytes, number: int) -> bytes:
    """Return a log without one of its batches."""
    start = 0
    for _ in range(number):
        start = batch_end(data, start)
    return data[:start] + data[batch_end(data, start) :]


def last_batch(data: bytes) -> bytes:
    """Return the last whole batch of a log."""
    start = 0
    while batch_end(data, start) < len(data):
        start = batch_end(data, start)
    return data[start:]


def test_what_a_majority_has_is_decided(voters: list[Path]) -> None:
    log = read_quorum_log(voters)
    assert log.damage == []
    assert [(each.zxid, each.data) for each in log.changes if each.path == "/controller_epoch"] == [(0, "1")]
    brokers = [(each.zxid, each.type) for each in log.changes if each.path == "/brokers/ids/1"]
    assert brokers == [(22, "create"), (72, "delete"), (87, "create")]
    assert max(each.zxid for each in log.changes) == 181


def test_what_one_alone_has_is_not(voters: list[Path]) -> None:
    cut_to(voters[0], 100)
    cut_to(voters[2], 100)
    assert max(each.zxid for each in read_quorum_log(voters).changes) < 100


def test_a_voter_that_was_left_behind_does_no_harm(voters: list[Path]) -> None:
    whole = read_quorum_log(voters)
    cut_to(voters[2], 50)
    assert read_quorum_log(voters) == whole


def test_the_log_is_in_one_of_several_data_directories(voters: list[Path]) -> None:
    whole = read_quorum_log(voters)
    for voter in voters:
        (voter / "disk1").mkdir()
        (voter / FOLDER).rename(voter / "disk1" / FOLDER)
    assert read_quorum_log(voters) == whole


@pytest.mark.parametrize(
    ("damaged", "text"),
    [
        pytest.param(lambda data: flipped(data, 5000), "wrong CRC", id="a bit is wrong"),
        pytest.param(lambda data: b"", "its log has no record", id="nothing is left"),
        pytest.param(lambda data: data + last_batch(data), "has offset 18. .* after 18", id="its end is there twice"),
        pytest.param(lambda data: without_batch(data, 3), "has offset .* after", id="a batch is missing"),
        pytest.param(lambda data: data + data[: batch_end(data, 0)], "has offset 0 .* after 18", id="it begins anew"),
        pytest.param(
            lambda data: data + entry(list(entries(data))[-1][-1].offset + 1, 0),
            "of epoch 0 after",
            id="an epoch falls",
        ),
    ],
)
def test_of_a_minority_damage_is_remarked_on_and_of_a_majority_nothing_is_known(
    voters: list[Path], damaged: Callable[[bytes], bytes], text: str
) -> None:
    whole = read_quorum_log(voters)
    for voter in voters[1:]:
        (voter / SEGMENT).write_bytes(damaged((voter / SEGMENT).read_bytes()))
    with pytest.raises(EvidenceError, match=f"no majority of the metadata logs can be read: .*{text}"):
        read_quorum_log(voters)
    shutil.copy(LOGS / "1" / SEGMENT, voters[1] / SEGMENT)
    log = read_quorum_log(voters)
    (remark,) = log.damage
    assert re.search(text, remark)
    assert log.changes == whole.changes


def test_a_segment_that_is_torn_and_has_a_successor_is_damaged(voters: list[Path]) -> None:
    for voter in voters:
        data = (voter / SEGMENT).read_bytes()
        parts = list(entries(data))
        second = next(at for at, batch in enumerate(parts) if batch[0].offset >= 120)
        start = 0
        for _ in range(second):
            start = batch_end(data, start)
        (voter / FOLDER / f"{parts[second][0].offset:020}.log").write_bytes(data[start:])
        cut_to(voter, 100)
    with pytest.raises(EvidenceError, match=r"a segment of its log begins at 1\d\d, after"):
        read_quorum_log(voters)


def test_a_log_in_several_segments_is_one_and_other_files_are_none(voters: list[Path]) -> None:
    whole = read_quorum_log(voters)
    for voter in voters:
        data = (voter / SEGMENT).read_bytes()
        first = next(iter(entries(data)))
        (voter / SEGMENT).write_bytes(data[: batch_end(data, 0)])
        (voter / FOLDER / f"{first[-1].offset + 1:020}.log").write_bytes(data[batch_end(data, 0) :])
        (voter / FOLDER / "0-x.log").write_bytes(b"")
    assert read_quorum_log(voters) == whole


def entry(offset: int, epoch: int) -> bytes:
    """Return a batch of one record, which names the leader at the start of an epoch."""
    value = struct.pack(">hi", 1, epoch)
    record = Record(key=struct.pack(">hh", 0, 2), value=value, timestamp_ms=1000 * epoch)
    return build_batch([record], base_offset=offset, leader_epoch=epoch, attributes=0x20)


@pytest.mark.parametrize(
    ("epochs", "committed"),
    [
        pytest.param([[1, 1], [1, 1], [1]], 2, id="a majority has it"),
        pytest.param([[1, 1, 1], [1, 2, 2], [1]], 1, id="two have as much, but other epochs"),
        pytest.param([[1, 1], [1, 1, 2], [1]], 2, id="of the last epoch one alone has something"),
        pytest.param([[1, 2, 4], [1, 2], [1, 2], [1], [1, 3]], 1, id="a majority has it, and another may replace it"),
        pytest.param([[1, 2, 4], [1, 2, 4], [1, 2, 4], [1], [1, 3]], 3, id="a majority has the last epoch's"),
    ],
)
def test_what_is_committed(tmp_path: Path, epochs: list[list[int]], committed: int) -> None:
    voters = [tmp_path / str(number) / "data" for number in range(len(epochs))]
    for voter, log in zip(voters, epochs, strict=True):
        (voter / SEGMENT).parent.mkdir(parents=True)
        (voter / SEGMENT).write_bytes(b"".join(entry(offset, epoch) for offset, epoch in enumerate(log)))
    assert {each.zxid for each in read_quorum_log(voters).changes} == set(range(committed))


def test_a_change_has_the_time_of_its_writers_clock_put_right(voters: list[Path]) -> None:
    plain = read_quorum_log(voters).changes
    right = read_quorum_log(voters, lambda leader, time_ms: time_ms - 1000 * (leader + 1)).changes
    assert [each.time_ms for each in right] == [each.time_ms - 1000 for each in plain]  # 0 led all the time


def test_two_controllers_that_disagree_are_not_believed(voters: list[Path]) -> None:
    data = bytearray((voters[2] / SEGMENT).read_bytes())
    first = batch_end(data, 0)
    batch = data[first : batch_end(data, first)]
    batch[34] ^= 1  # the last byte of its timestamp
    seal(batch)
    (voters[2] / SEGMENT).write_bytes(data[:first] + batch + data[first + len(batch) :])
    with pytest.raises(EvidenceError, match="two controllers have different records at offset 1 of the log"):
        read_quorum_log(voters)


def test_without_a_beginning_there_is_no_history(voters: list[Path]) -> None:
    for voter in voters:
        (voter / SEGMENT).rename(voter / FOLDER / "00000000000000000009.log")
    with pytest.raises(
        EvidenceError, match=r"can be read: .*a segment of its log begins at 9, and no snapshot stands for"
    ):
        read_quorum_log(voters)
