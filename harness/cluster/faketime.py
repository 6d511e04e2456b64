"""Gives a server its own wall clock, by libfaketime, which is loaded before the C library.

The clock's setting is read from a file, once a second. Only reads of the wall clock see it; a timed wait
uses the monotonic clock, which stays the machine's. libfaketime 0.9.10 replaces waits too, and gets those
wrong: a JVM no longer waits at all, and Python's `time.sleep` fails. So each cluster has a copy without these symbols.
"""

import struct
from pathlib import Path

from harness.cluster.clocks import FOLDER, setting_of
from harness.errors import ClusterError
from harness.system.libraries import installed

_LIBRARY = "libfaketimeMT.so.1"
"""The one for processes of several threads."""
_COPY = "wall-clock.so"
_WAITS = frozenset(
    b"alarm clock_nanosleep epoll_pwait epoll_wait nanosleep poll ppoll pselect pthread_cond_destroy pthread_cond_init"
    b" pthread_cond_timedwait select sleep timer_gettime timer_settime timerfd_gettime timerfd_settime usleep".split()
)
_SHARED, _UNSHARED = b"/faketime_sem_%ld\0", b"/faketime/sem_%ld\0"
"""A name that no semaphore can have: libfaketime then uses no shared memory, which a killed process would leave."""
_HEADER, _SECTION, _SYMBOL = struct.Struct("<40xQ10xHHH"), struct.Struct("<4xI16xQQI12xQ"), struct.Struct("<I2xHQ8x")
"""Of ELF for 64 bits: where sections are, how long each is and how many; a section's type, place, size, link and length
of its entries; a symbol's name, section and value."""
_DYNAMIC_SYMBOLS, _SECTION_AT = 11, 6


def library() -> Path | None:
    """Return where libfaketime is installed; None where it is not."""
    return next(iter(installed("faketime", _LIBRARY)), None)


def lacking() -> str:
    """Return why no server can have its own clock here; empty if it can."""
    return "" if library() else f"there is no {_LIBRARY}: install libfaketime (on Debian: apt-get install faketime)"


def install(folder: Path) -> None:
    """Copy what servers load into the cluster's folder.

    Raises:
        ClusterError: libfaketime is not installed.
    """
    source = library()
    if source is None:
        raise ClusterError(lacking())
    (folder / FOLDER).mkdir(exist_ok=True)
    (folder / FOLDER / _COPY).write_bytes(without_waits(source.read_bytes()))


def environment(folder: Path, process: str, inside: str = "") -> dict[str, str]:
    """Return the environment of a process, started in the cluster's folder, that has its own wall clock.

    `inside` is the path of the folder of clocks there, if different, as in a container.
    """
    file = folder / FOLDER / process
    if not file.exists():
        file.write_text(setting_of(None, 0), encoding="ascii")
    return {
        "LD_PRELOAD": f"{inside or f'./{FOLDER}'}/{_COPY}",  # the folder's own path may have spaces, which end a name
        "FAKETIME_TIMESTAMP_FILE": f"{inside}/{process}" if inside else str(file.resolve()),
        "FAKETIME_CACHE_DURATION": "0",  # until the second is over
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "NO_FAKE_STAT": "1",  # of files
        "FAKE_UTIME": "0",
    }


def without_waits(elf: bytes) -> bytes:
    """Return the library with those symbols undefined, as if it had never had them."""
    image = bytearray(elf.replace(_SHARED, _UNSHARED))
    at, length, count, _ = _HEADER.unpack_from(image)
    sections = [_SECTION.unpack_from(image, at + number * length) for number in range(count)]
    for kind, begin, size, link, entry in sections:
        if kind != _DYNAMIC_SYMBOLS:
            continue
        names = sections[link][1]
        for symbol in range(begin, begin + size, entry):
            name, section, _ = _SYMBOL.unpack_from(image, symbol)
            if section and bytes(image[names + name : image.index(0, names + name)]) in _WAITS:
                struct.pack_into("<HQ", image, symbol + _SECTION_AT, 0, 0)
    return bytes(image)
