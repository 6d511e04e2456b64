from pathlib import Path

import pytest

from harness.events import FIELDS
from harness.store.folder import RunFolder
from harness.store.seal import NO_END, damage, of_kind, seal
from harness.store.version import write_version
from harness.system.chain import all_chained

ENDED = list(all_chained([b'{"n":%d}\n' % number for number in range(3)]))
KILLED = ENDED[:-1]


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path)
    write_version(folder, FIELDS)
    for path, lines in (
        (folder.phases, [b"{}\n"]),
        (folder.zookeeper, ENDED),
        (folder.operations_of("a"), ENDED),
        (folder.state_change_log(1), KILLED),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(lines))
    return folder


def test_a_broker_may_be_killed_and_phases_may_follow(run: RunFolder) -> None:
    seal(run)
    with run.phases.open("a") as phases:
        phases.write("{}\n")
    assert damage(run) == []


@pytest.mark.parametrize("last", [b"", ENDED[-1][:5]], ids=["between two lines", "in a line"])
def test_what_a_killed_client_had_still_to_say_is_unknown_and_nothing_else(run: RunFolder, last: bytes) -> None:
    run.operations_of("a").write_bytes(b"".join([*KILLED, last]))
    seal(run)
    (hole,) = damage(run)
    assert (hole.place, hole.text, hole.is_open_end) == ("operations/a.jsonl", NO_END, True)
    assert of_kind([hole], "operations") is None


def test_what_was_damaged_before_the_seal_is_found(run: RunFolder) -> None:
    run.zookeeper.write_bytes(b"".join([ENDED[0], *ENDED[2:]]))
    seal(run)
    assert [hole.text for hole in damage(run)] == ["line 2: numbers 1 to 1 are missing before it"]


def test_a_run_is_sealed_once(run: RunFolder) -> None:
    seal(run)
    run.zookeeper.write_bytes(b"".join(ENDED[1:]))
    seal(run)
    assert of_kind(damage(run), "zookeeper") is not None


def test_a_file_that_comes_later_is_no_evidence(run: RunFolder) -> None:
    seal(run)
    run.operations_of("b").write_bytes(b"".join(ENDED))
    assert [(hole.place, hole.kind) for hole in damage(run)] == [("operations/b.jsonl", "operations")]
