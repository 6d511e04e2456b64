import logging
from dataclasses import replace

import pytest

from harness.broker.log.log import LogSettings
from harness.broker.log.manager import LogManager
from harness.broker.log.meta_properties import claim_data_directory
from harness.broker.log.storage import StorageError
from harness.broker.rules import rules_with
from harness.simulation.disk import MemoryStorage
from tests.broker.log.logs import SMALL, Heard, batch, everything
from tests.raising import raising


def manager(storage: MemoryStorage, heard: Heard | None = None) -> LogManager:
    logs = LogManager(storage, SMALL, epoch_assigned=(heard or Heard()).epoch)
    logs.load()
    return logs


def fill(logs: LogManager, topic: str, partition: int) -> bytes:
    log = logs.get_or_create(topic, partition)
    for _ in range(10):
        log.append_as_leader(batch(2), 1)
    return everything(log)


def test_a_log_is_created_once(storage: MemoryStorage) -> None:
    logs = manager(storage)
    assert logs.get("t", 0) is None
    log = logs.get_or_create("t", 0)
    assert logs.get("t", 0) is logs.get_or_create("t", 0) is log
    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    assert storage.list("t-0") == ["00000000000000000000.log"]


def test_a_topic_may_have_settings_of_its_own() -> None:
    logs = manager(MemoryStorage())
    own = LogSettings(segment_bytes=5000)
    assert logs.get_or_create("a", 0, own).settings == own
    assert logs.get_or_create("b", 0).settings == SMALL
    assert logs.get_or_create("b", 0, own).settings == own
    assert logs.get_or_create("b", 0).settings == own


def test_the_owner_hears_of_epochs() -> None:
    heard = Heard()
    logs = manager(MemoryStorage(), heard)
    logs.get_or_create("a-b", 3).append_as_leader(batch(), 9)
    assert heard.epochs == [("a-b", 3, 9, 0)]


def test_logs_are_sorted_by_topic_and_partition_number() -> None:
    logs = manager(MemoryStorage())
    for topic, partition in (("b", 10), ("a-1", 2), ("b", 9), ("a", 0)):
        logs.get_or_create(topic, partition)
    assert [(log.topic, log.partition) for log in logs.logs()] == [("a", 0), ("a-1", 2), ("b", 9), ("b", 10)]


def test_a_clean_stop_is_trusted_once(storage: MemoryStorage) -> None:
    logs = manager(storage)
    before = fill(logs, "t", 0)
    logs.close_clean()
    assert storage.exists(".kafka_cleanshutdown")
    assert storage.read("recovery-point-offset-checkpoint") == b"0\n1\nt 0 20\n"
    storage.lose_power()
    again = LogManager(storage, SMALL)
    (loaded,) = again.load()
    assert (loaded.clean, loaded.log_end_offset, loaded.recovery_point, loaded.truncated_bytes) == (True, 20, 20, 0)
    assert everything(again.logs()[0]) == before
    assert not storage.exists(".kafka_cleanshutdown")
    (loaded,) = LogManager(storage, SMALL).load()
    assert not loaded.clean


def test_a_clean_stop_that_could_not_sync_leaves_no_marker(
    storage: MemoryStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = manager(storage)
    fill(logs, "t", 0)
    monkeypatch.setattr("harness.simulation.disk.MemoryFile.sync", raising(OSError(5, "Input/output error")))
    with pytest.raises(OSError, match="Input/output"):
        logs.close_clean()
    assert not storage.exists(".kafka_cleanshutdown")


def test_loading_after_a_crash_is_sorted_and_checked(storage: MemoryStorage) -> None:
    logs = manager(storage)
    for topic, partition in (("b", 10), ("b", 9), ("a", 0)):
        fill(logs, topic, partition)
    del storage.files["b-9/00000000000000000016.log"].data[-1:]
    loaded = LogManager(storage, SMALL).load()
    assert [(log.topic, log.partition, log.log_end_offset) for log in loaded] == [
        ("a", 0, 20),
        ("b", 9, 18),
        ("b", 10, 20),
    ]
    assert [log.clean for log in loaded] == [False] * 3
    assert storage.read("recovery-point-offset-checkpoint") == b"0\n3\na 0 20\nb 9 18\nb 10 20\n"


async def test_recovery_starts_where_the_checkpoint_says(storage: MemoryStorage) -> None:
    logs = manager(storage)
    fill(logs, "t", 0)
    await logs.checkpoint_recovery_points()
    assert storage.read("recovery-point-offset-checkpoint") == b"0\n1\nt 0 16\n"
    storage.lose_power()
    (loaded,) = LogManager(storage, SMALL).load()
    assert (loaded.recovery_point, loaded.log_end_offset) == (16, 16)


async def test_truncation_below_the_checkpointed_recovery_point_lowers_it_there_at_once(storage: MemoryStorage) -> None:
    logs = manager(storage)
    fill(logs, "t", 0)
    await logs.checkpoint_recovery_points()
    logs.get_or_create("t", 0).truncate_to(6)
    assert storage.read("recovery-point-offset-checkpoint") == b"0\n1\nt 0 6\n"


async def test_the_log_start_survives_a_restart(storage: MemoryStorage) -> None:
    logs = manager(storage)
    fill(logs, "t", 0)
    fill(logs, "u", 0)
    logs.get_or_create("t", 0).advance_log_start(5)
    await logs.checkpoint_recovery_points()
    assert storage.read("log-start-offset-checkpoint") == b"0\n1\nt 0 5\n"
    assert [loaded.log_start_offset for loaded in LogManager(storage, SMALL).load()] == [5, 0]


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_malformed_checkpoint_that_only_saves_time_counts_as_empty(
    storage: MemoryStorage, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(manager(storage), "t", 0)
    storage.replace(name, b"0\n9\n")
    (loaded,) = LogManager(storage, SMALL).load()
    assert (loaded.log_start_offset, loaded.log_end_offset, loaded.recovery_point) == (0, 20, 0)
    assert name in caplog.text


def test_high_watermarks_are_kept(storage: MemoryStorage) -> None:
    logs = manager(storage)
    assert logs.read_high_watermarks() == {}
    logs.write_high_watermarks({("t", 0): 17, ("t", 1): 0})
    assert storage.read("replication-offset-checkpoint") == b"0\n2\nt 0 17\nt 1 0\n"
    assert logs.read_high_watermarks() == {("t", 0): 17, ("t", 1): 0}


def test_a_malformed_high_watermark_checkpoint_is_a_storage_error(storage: MemoryStorage) -> None:
    storage.replace("replication-offset-checkpoint", b"x")
    with pytest.raises(StorageError, match="replication-offset-checkpoint"):
        manager(storage).read_high_watermarks()


async def test_deletion_puts_the_log_aside_and_leaves_nothing_else_of_it(storage: MemoryStorage) -> None:
    logs = manager(storage)
    for partition in (0, 1):
        fill(logs, "t", partition)
    await logs.checkpoint_recovery_points()
    logs.write_high_watermarks({("t", 0): 20, ("t", 1): 20})
    assert logs.delete("t", 0) == "t-0.0-delete"
    assert logs.delete("t", 0) is None
    assert (logs.get("t", 0), [log.partition for log in logs.logs()]) == (None, [1])
    assert logs.put_aside() == ["t-0.0-delete"]
    logs.remove("t-0.0-delete")
    assert not [name for name in storage.list("") if name.startswith("t-0")]
    assert storage.read("recovery-point-offset-checkpoint") == b"0\n1\nt 1 16\n"
    assert logs.read_high_watermarks() == {("t", 1): 20}
    assert logs.get_or_create("t", 0).log_end_offset == 0


def test_a_log_that_was_put_aside_is_no_log_at_the_next_start(
    storage: MemoryStorage, caplog: pytest.LogCaptureFixture
) -> None:
    logs = manager(storage)
    topic = "t" * 249
    for _ in range(2):
        fill(logs, topic, 12345)
        logs.delete(topic, 12345)
    with caplog.at_level(logging.WARNING):
        following = LogManager(storage, SMALL)
        assert following.load() == []
    assert [len(name) for name in following.put_aside()] == [255, 255]
    assert not [record for record in caplog.records if "log.ignored" in record.msg]


def test_what_is_no_log_is_left_alone_and_named(storage: MemoryStorage, caplog: pytest.LogCaptureFixture) -> None:
    logs = manager(storage)
    fill(logs, "t", 0)
    logs.close_clean()
    claim_data_directory(storage, broker_id=1, cluster_id="c")
    for name in ("lost+found", "t-x", "spaced out-0"):
        storage.make_folder(name)
    with caplog.at_level(logging.WARNING):
        assert len(LogManager(storage, SMALL).load()) == 1
    ignored = [
        record.args[0] for record in caplog.records if "log.ignored" in record.msg and isinstance(record.args, tuple)
    ]
    assert ignored == ["lost+found", "spaced out-0", "t-x"]
    assert storage.exists("t-x")


def test_a_data_directory_is_claimed_once(storage: MemoryStorage) -> None:
    claim_data_directory(storage, broker_id=1, cluster_id="abc")
    assert storage.read("meta.properties") == b"version=0\nbroker.id=1\ncluster.id=abc\n"
    claim_data_directory(storage, broker_id=1, cluster_id="abc")


def test_what_kafka_wrote_is_understood(storage: MemoryStorage) -> None:
    storage.replace("meta.properties", b"#\n#Mon Nov 02 10:00:00 UTC 2026\nbroker.id=1\nversion=0\ncluster.id=abc\n")
    claim_data_directory(storage, broker_id=1, cluster_id="abc")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"version=0\nbroker.id=2\ncluster.id=abc\n", "broker.id=2, expected 1", id="another broker"),
        pytest.param(b"version=0\nbroker.id=1\ncluster.id=x\n", "cluster.id=x, expected abc", id="another cluster"),
        pytest.param(b"version=1\nbroker.id=1\ncluster.id=abc\n", "version=1, expected 0", id="another version"),
        pytest.param(b"", "broker.id=None, expected 1", id="an empty file"),
    ],
)
def test_a_data_directory_of_somebody_else_is_refused(storage: MemoryStorage, content: bytes, reason: str) -> None:
    storage.replace("meta.properties", content)
    with pytest.raises(StorageError, match=reason):
        claim_data_directory(storage, broker_id=1, cluster_id="abc")


@pytest.mark.parametrize(("bugs", "clean"), [([], False), (["clean-marker-kept"], True)])
def test_a_crash_after_a_clean_stop_is_none_to_a_broker_that_keeps_the_marker(bugs: list[str], *, clean: bool) -> None:
    storage, rules = MemoryStorage(), rules_with(bugs)
    LogManager(storage, SMALL, rules=rules).close_clean()
    logs = LogManager(storage, SMALL, rules=rules)
    logs.load()
    fill(logs, "t", 0)
    (loaded,) = LogManager(storage, SMALL, rules=rules).load()
    assert loaded.clean == clean


@pytest.mark.parametrize(("bugs", "end"), [([], 0), (["unsynced-recovery-point"], 20)])
async def test_an_unsynced_recovery_point_is_past_the_end_after_a_power_loss(bugs: list[str], end: int) -> None:
    storage, rules = MemoryStorage(), rules_with(bugs)
    logs = LogManager(storage, replace(SMALL, segment_bytes=1 << 20), rules=rules)
    fill(logs, "t", 0)
    await logs.checkpoint_recovery_points()
    storage.lose_power()
    (loaded,) = LogManager(storage, SMALL, rules=rules).load()
    assert (loaded.log_end_offset, loaded.recovery_point) == (0, end)


@pytest.mark.parametrize(("bugs", "start"), [([], 5), (["log-start-forgotten"], 0)])
def test_a_log_start_that_is_forgotten_goes_back(bugs: list[str], start: int) -> None:
    storage, rules = MemoryStorage(), rules_with(bugs)
    logs = LogManager(storage, SMALL, rules=rules)
    fill(logs, "t", 0)
    logs.get_or_create("t", 0).advance_log_start(5)
    logs.close_clean()
    (loaded,) = LogManager(storage, SMALL, rules=rules).load()
    assert (loaded.clean, loaded.log_start_offset) == (True, start)
