"""Which lines does a recorded client write, and when are they in its file?

Each client has a file of its own in the recorder's folder, its lines numbered and chained. The line that begins a send
is written before the client library gets the record, with all lines before it. Whatever a kill cuts off after that is
an operation whose end is unknown, and a file without its end, which forbids PASS. All operations use one clock.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import ExitStack, contextmanager
from itertools import count
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from threading import Lock
from time import monotonic_ns
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

from harness.system.chain import Link, end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

ID_HEADER = "kafka-chaos-id"
"""The header of a stamped record, which holds its value id."""
LONGEST_VALUE = 200
"""Bytes of a value that is its own id; of a longer one, and of one that is no UTF-8, its SHA-256 is."""
HELD_PARTS = 512
"""Parts, two a line, of ends and polls that wait for the next beginning of a send."""

Record = tuple[str, int, int, str]
"""Topic, partition, offset and value id of a record that was read."""


class Finishing(Protocol):
    """A client whose last lines are still to be written."""

    def finish_recording(self) -> None:
        """Write what is asked for last, and the end of the file."""


class Recorder:
    """The folder of one history: one file a client."""

    def __init__(
        self, folder: str | Path, *, name: str = "", stamp: bool = False, settings: Mapping[str, object] | None = None
    ) -> None:
        """Make the folder, unless it is there.

        Args:
            folder: Where the history goes; `chaos judge --operations FOLDER` judges it.
            name: How names of clients begin, where several processes record; by default the process id.
            stamp: Whether producers add the header `kafka-chaos-id`, for applications whose values are not unique.
            settings: What else is known, by the names of docs/reference/evidence.md: `{"power_loss": False}`.
        """
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.stamp = stamp
        self._name = name or f"p{os.getpid()}"
        self._settings = dict(settings or {})
        self._numbers = count()
        self._clients: list[Finishing] = []

    def lines(self, kind: str) -> Lines:
        """Return the lines of a new client."""
        lines = Lines(self.folder, f"{self._name}-{kind}-{next(self._numbers)}")
        lines.settings(self._settings)
        return lines

    def follow(self, client: Finishing) -> None:
        """Have a client finish when the recorder is closed."""
        self._clients.append(client)

    def close(self) -> None:
        """Finish the files of all clients that are not closed yet; an error is raised when all have been asked."""
        clients, self._clients = self._clients, []
        with ExitStack() as stack:
            for client in reversed(clients):
                stack.callback(client.finish_recording)

    def __enter__(self) -> Recorder:
        """Return the recorder."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish all files."""
        self.close()


class Lines:
    """The lines of one client; its methods may be called from any thread."""

    def __init__(self, folder: Path, process: str) -> None:
        self.process = process
        self._file = os.open(folder / f"{process}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        self._name = quoted(process)
        self._lock = Lock()
        self._held: list[bytes] = []
        self._indexes = count()
        self._lives = count(2)
        self._written = 0
        self._checksum = 0
        self._topics: dict[str, str] = {}
        self.transactional_id = ""
        """Of a transactional producer."""
        self.isolation = ""
        """Of a consumer."""
        self._of_transaction = ""
        """Fields of the operations of the last transaction that was begun."""
        self.closed = False

    def send_begins(self, topic: str, partition: int, key: object, value: str, acks: int) -> str:
        """Write down that a record is about to be sent; return how the line of its end begins."""
        fields = (
            f'"process":{self._name},"kind":"send","topic":{self._quoted(topic)},"value":{quoted(value)},"acks":{acks}'
        )
        if key is not None:
            fields = f'{fields},"key":{quoted(value_id(key))}'
        index = next(self._indexes)
        start = f'{{"index":{index},{fields}{self._of_transaction}'
        with self._lock:
            self._add(f'{start},"partition":{partition},"time_ns":{monotonic_ns()},"type":"invoke"')
            self._flush()
        return start

    def send_ends(self, start: str, outcome: str, partition: int, offset: int, error: str = "") -> None:
        """Write down how a send ended: ok, fail (it certainly had no effect) or info."""
        said = f',"error":{quoted(error)}' if error else ""
        with self._lock:
            self._add(
                f'{start},"partition":{partition},"offset":{offset}{said},"time_ns":{monotonic_ns()},"type":"{outcome}"'
            )

    @contextmanager
    def transacting(self, kind: str) -> Iterator[None]:
        """Write down a step of a transactional producer around the call of its library; what raises is unknown.

        Args:
            kind: Of the operation: `init_transactions`, or begin, commit or abort `_transaction`.
        """
        with self._lock:
            index = next(self._indexes)
            of_id = f',"transactional_id":{quoted(self.transactional_id)}'
            if kind == "begin_transaction":
                self._of_transaction = f'{of_id},"transaction":{index}'
            said = of_id if kind == "init_transactions" else self._of_transaction
            start = f'{{"index":{index},"process":{self._name},"kind":"{kind}"{said}'
            self._add(f'{start},"time_ns":{monotonic_ns()},"type":"invoke"')
            self._flush()
        try:
            yield
        except BaseException as error:
            self.commit_ends(start, "info", str(error))
            raise
        self.commit_ends(start, "ok")

    def polled(self, began_ns: int, mode: str, records: Iterable[Record]) -> None:
        """Write down a poll that began at an instant and gave these records."""
        listed = ",".join(
            f'{{"topic":{self._quoted(topic)},"partition":{partition},"offset":{offset},"value":{quoted(value)}}}'
            for topic, partition, offset, value in records
        )
        with self._lock:
            start = (
                f'{{"index":{next(self._indexes)},"process":{self._name},"kind":"poll","mode":"{mode}"{self._level()}'
            )
            self._add(f'{start},"time_ns":{began_ns},"type":"invoke"')
            self._add(f'{start},"records":[{listed}],"time_ns":{monotonic_ns()},"type":"ok"')

    def end_offset(self, topic: str, partition: int, began_ns: int, offset: int) -> None:
        """Write down where a partition ends."""
        place = f'"topic":{self._quoted(topic)},"partition":{partition}'
        with self._lock:
            start = f'{{"index":{next(self._indexes)},"process":{self._name},"kind":"end_offset",{place}'
            self._add(f'{start},"time_ns":{began_ns},"type":"invoke"')
            self._add(f'{start},"offset":{offset},"time_ns":{monotonic_ns()},"type":"ok"')

    def commit_begins(self, group: str, topic: str, partition: int, offset: int) -> str:
        """Write down that an offset is about to be committed; return how the line of its end begins."""
        start = (
            f'{{"index":{next(self._indexes)},"process":{self._name},"kind":"commit","mode":"manual",'
            f'"group":{quoted(group)},"topic":{self._quoted(topic)},"partition":{partition},"offset":{offset}'
        )
        with self._lock:
            self._add(f'{start},"time_ns":{monotonic_ns()},"type":"invoke"')
            self._flush()
        return start

    def commit_ends(self, start: str, outcome: str, error: str = "") -> None:
        """Write down how a commit, or a step of a transaction, ended: ok or info."""
        said = f',"error":{quoted(error)}' if error else ""
        with self._lock:
            self._add(f'{start}{said},"time_ns":{monotonic_ns()},"type":"{outcome}"')

    def committed(self, group: str, topic: str, partition: int, began_ns: int, offset: int) -> None:
        """Write down which offset of a group was read back; -1 for none."""
        place = f'"group":{quoted(group)},"topic":{self._quoted(topic)},"partition":{partition}'
        with self._lock:
            start = f'{{"index":{next(self._indexes)},"process":{self._name},"kind":"fetch_committed",{place}'
            self._add(f'{start},"time_ns":{began_ns},"type":"invoke"')
            self._add(f'{start},"offset":{offset},"time_ns":{monotonic_ns()},"type":"ok"')

    def settings(self, values: Mapping[str, object]) -> None:
        """Write down settings, by their names in docs/reference/evidence.md."""
        with self._lock:
            for name, value in values.items():
                start = f'{{"index":{next(self._indexes)},"process":{self._name},"kind":"setting"'
                said = f'"key":{quoted(name)},"value":{quoted(str(value).lower())}'
                self._add(f'{start},{said},"time_ns":{monotonic_ns()},"type":"invoke"')
            self._flush()

    def moved(self) -> None:
        """Go on as another process: a reader that seeks is another one."""
        with self._lock:
            self._name = quoted(f"{self.process}.{next(self._lives)}")
            self._indexes = count()

    def close(self) -> None:
        """Write the end of the file; what comes later is not written."""
        with self._lock:
            if self.closed:
                return
            if self._written:
                self._held.append(end(Link(self._written, self._checksum)))
            self._flush()
            self.closed = True
            os.close(self._file)

    def _level(self) -> str:
        return f',"isolation":{quoted(self.isolation)}' if self.isolation else ""

    def _quoted(self, topic: str) -> str:
        text = self._topics.get(topic)
        if text is None:
            text = self._topics[topic] = quoted(topic)
        return text

    def _add(self, fields: str) -> None:
        """Number and chain a line, as `harness.system.chain.chained` does, without an object for each."""
        if self.closed:
            return
        body = f'{fields},"line":{self._written}'.encode()
        self._checksum = crc32(body, self._checksum)
        self._written += 1
        self._held += (body, b',"chain":"%08x"}\n' % self._checksum)
        if len(self._held) > HELD_PARTS:
            self._flush()

    def _flush(self) -> None:
        if self.closed:
            return
        data = b"".join(self._held)
        self._held.clear()
        while data:
            data = data[os.write(self._file, data) :]


def value_id(value: object) -> str:
    """Return the id of a value: its text, or its SHA-256 where it is long or no UTF-8."""
    data = value if isinstance(value, bytes | bytearray) else str(value).encode() if value is not None else b""
    if len(data) <= LONGEST_VALUE:
        try:
            return data.decode()
        except UnicodeDecodeError:
            pass
    return hashlib.sha256(data).hexdigest()


def stamped(lines: Lines, headers: Sequence[tuple[str, bytes]] | None) -> tuple[str, list[tuple[str, bytes]]]:
    """Return a new value id, and headers that carry it."""
    identity = f"{lines.process}:{monotonic_ns()}"
    return identity, [*(headers or ()), (ID_HEADER, identity.encode())]


def id_of(value: object, headers: Iterable[tuple[str, bytes | str | None]] | None) -> str:
    """Return the id of a record that was read: its stamp, if it has one."""
    for name, stamp in headers or ():
        if name == ID_HEADER and stamp is not None:
            return stamp.decode() if isinstance(stamp, bytes) else stamp
    return value_id(value)


class Reading:
    """Where the partitions that a consumer reads began, and what may be said of it."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, int], bool] = {}
        """Whether reading began at the log's start, by the consumer's configuration."""

    def sought(self, topic: str, partition: int, *, at_start: bool) -> None:
        """The consumer continues at another offset; unless that is the start, records before it are not read."""
        place = (topic, partition)
        self.partitions[place] = at_start and self.partitions.get(place, True)

    def settings(self, starts: Mapping[tuple[str, int], int]) -> dict[str, object]:
        """Return what the first offsets of the logs show, as they are when all is read.

        `read_from_start`: whether each partition was certainly read from there; `deleting_topics`, if all are known:
        the topics from which records were deleted.
        """
        begun = [began and starts.get(partition) == 0 for partition, began in self.partitions.items()]
        settings: dict[str, object] = {"read_from_start": all(begun)} if begun else {}
        if begun and starts.keys() >= self.partitions.keys():
            deleting = {topic for topic, partition in self.partitions if starts[topic, partition] > 0}
            settings["deleting_topics"] = ",".join(sorted(deleting)) or "none"
        return settings


def topic_settings(configs: Iterable[Mapping[str, str | None]]) -> dict[str, object]:
    """Return the combined configuration of topics: of each setting the value that allows most."""
    configs = list(configs)
    settings: dict[str, object] = {}
    minimums = [int(value) for each in configs if (value := each.get("min.insync.replicas"))]
    unclean = [value for each in configs if (value := each.get("unclean.leader.election.enable"))]
    if configs and len(minimums) == len(configs):
        settings["min_insync_replicas"] = min(minimums)
    if configs and len(unclean) == len(configs):
        settings["unclean_leader_election"] = any(value.lower() == "true" for value in unclean)
    return settings
