"""What a quorum decided, by the metadata logs that three controllers of a real Kafka 4.4.0 left after a smoke run."""

import shutil
from pathlib import Path

import pytest

from harness.broker.log.batch import seal
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


def cut_to(folder: Path, offset: int) -> None:
    """Cut a log before the first batch that reaches an offset."""
    data = (folder / SEGMENT).read_bytes()
    whole = b""
    for batch in entries(data):
        if batch[-1].offset >= offset:
            break
        size = int.from_bytes(data[len(whole) + 8 : len(whole) + 12], "big") + 12
        whole += data[len(whole) : len(whole) + size]
    (folder / SEGMENT).write_bytes(whole)


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


def test_a_log_that_is_damaged_is_remarked_on(voters: list[Path]) -> None:
    data = bytearray((voters[2] / SEGMENT).read_bytes())
    data[5000] ^= 1
    (voters[2] / SEGMENT).write_bytes(data)
    (remark,) = read_quorum_log(voters).damage
    assert "wrong CRC" in remark


def test_two_controllers_that_disagree_are_remarked_on(voters: list[Path]) -> None:
    ours, theirs = (list(entries((voters[at] / SEGMENT).read_bytes())) for at in (0, 1))
    assert ours[3][0].time_ms == theirs[3][0].time_ms
    data = bytearray((voters[2] / SEGMENT).read_bytes())
    first = int.from_bytes(data[8:12], "big") + 12
    batch = data[first : first + int.from_bytes(data[first + 8 : first + 12], "big") + 12]
    batch[34] ^= 1  # the last byte of its timestamp
    seal(batch)
    (voters[2] / SEGMENT).write_bytes(data[:first] + batch + data[first + len(batch) :])
    (remark,) = read_quorum_log(voters).damage
    assert remark == "two controllers have different records at offset 1 of the metadata log"


def test_without_a_beginning_there_is_no_history(voters: list[Path]) -> None:
    for voter in voters:
        (voter / SEGMENT).rename(voter / FOLDER / "00000000000000000009.log")
    with pytest.raises(EvidenceError, match=r"no metadata log that begins at offset 0: .*its log begins at 9"):
        read_quorum_log(voters)
