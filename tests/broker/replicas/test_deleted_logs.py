import asyncio

from harness.broker.log.directories import DataDirectory, LogDirectories
from harness.broker.log.directory import LogDirectory
from harness.broker.log.manager import LogManager
from harness.broker.replicas.deleted_logs import DeletedLogs
from harness.simulation.disk import MemoryStorage

FOLDER = "t-0.0-delete"


def directories(logs: LogManager, storage: MemoryStorage) -> LogDirectories:
    return LogDirectories({"d": DataDirectory(disk=LogDirectory(storage), logs=logs)})


def storage_with_a_deleted_log() -> MemoryStorage:
    storage = MemoryStorage()
    logs = LogManager(storage)
    logs.load()
    logs.get_or_create("t", 0)
    assert logs.delete("t", 0) == FOLDER
    return storage


async def test_a_deleted_log_is_removed_when_its_time_has_come() -> None:
    storage = storage_with_a_deleted_log()
    removing = DeletedLogs(directories(LogManager(storage), storage), delay_s=60)
    removing.remove_later(f"d/{FOLDER}")
    await asyncio.sleep(59)
    assert storage.exists(FOLDER)
    await asyncio.sleep(2)
    assert not storage.exists(FOLDER)


async def test_what_an_earlier_life_left_behind_is_removed_too() -> None:
    storage = storage_with_a_deleted_log()
    logs = LogManager(storage)
    assert logs.load() == []
    assert storage.exists(FOLDER)
    DeletedLogs(directories(logs, storage), delay_s=60).start()
    await asyncio.sleep(61)
    assert not storage.exists(FOLDER)


async def test_a_broker_that_stops_leaves_it_to_the_next_life() -> None:
    storage = storage_with_a_deleted_log()
    removing = DeletedLogs(directories(LogManager(storage), storage), delay_s=60)
    removing.start()
    removing.stop()
    await asyncio.sleep(61)
    assert storage.exists(FOLDER)


async def test_a_disk_that_refuses_does_not_stop_the_others() -> None:
    storage = storage_with_a_deleted_log()

    class Refusing(LogManager):
        def remove(self, folder: str) -> None:
            if folder == "bad":
                raise OSError("no")
            super().remove(folder)

    removing = DeletedLogs(directories(Refusing(storage), storage), delay_s=1)
    removing.remove_later("d/bad")
    removing.remove_later(f"d/{FOLDER}")
    await asyncio.sleep(2)
    assert not storage.exists(FOLDER)


async def test_what_is_put_aside_under_a_name_that_waits_has_its_whole_delay() -> None:
    storage = storage_with_a_deleted_log()
    removing = DeletedLogs(directories(LogManager(storage), storage), delay_s=60)
    removing.remove_later(f"d/{FOLDER}")
    await asyncio.sleep(40)
    removing.remove_later(f"d/{FOLDER}")
    await asyncio.sleep(40)
    assert storage.exists(FOLDER)
    await asyncio.sleep(21)
    assert not storage.exists(FOLDER)
