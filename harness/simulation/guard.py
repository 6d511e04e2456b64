"""Nothing real in a simulated run: use of a clock, of randomness, a thread, a file or a socket ends the run.

That goes for the thread that simulates; what others in the same process do, such as Spark's, is their own affair.

Functions of the standard library are replaced while the guard is up; what is opened, it hears of through an audit hook,
which cannot be taken back and so is set once and listens only while a guard is up. A module that is imported for the
first time reads its own file, which is no data of the run. Logging is off meanwhile: its records have the real time.
"""

import _thread
import datetime
import logging
import os
import random
import secrets
import select
import signal
import ssl
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self, cast

from harness.simulation.loop import SimulationError

_CLOCKS = (
    "time time_ns monotonic monotonic_ns perf_counter perf_counter_ns process_time process_time_ns thread_time"
    " thread_time_ns clock_gettime clock_gettime_ns gmtime localtime ctime asctime strftime sleep"
)
_CHANCE = (
    "random uniform triangular randint choice randrange sample shuffle choices normalvariate lognormvariate expovariate"
    " vonmisesvariate gammavariate gauss betavariate paretovariate weibullvariate getrandbits randbytes seed getstate"
    " setstate _urandom"
)
_SECRETS = "token_bytes token_hex token_urlsafe randbits randbelow choice"
_FUNCTIONS: tuple[tuple[Any, str], ...] = (
    (time, _CLOCKS),
    (random, _CHANCE),
    (secrets, _SECRETS),
    (os, "urandom getrandom stat lstat access statvfs mkfifo pipe memfd_create times getloadavg"),
    (ssl, "RAND_bytes"),
    (uuid, "uuid1 uuid4"),
    (select, "select poll"),
    (signal, "alarm setitimer"),
    (_thread, "start_new_thread"),
    (threading.Thread, "start"),
)
_AUDITED = frozenset({"open", "os", "shutil", "socket", "subprocess", "mmap", "sqlite3", "tempfile"})
"""Beginnings of names of audit events, up to the first dot, of actions on something real."""
_IMPORTING = "<frozen importlib._bootstrap"


class Forbidden(SimulationError):
    """Something reached out of the simulation; says what, and from where."""


class _AnyDateTime(type):
    """Takes every date and time for an instance, as the real class does."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL_DATETIME)


_REAL_DATETIME = datetime.datetime


class _TimelessDateTime(_REAL_DATETIME, metaclass=_AnyDateTime):
    """`datetime.datetime` while a guard is up: it asks the clock of the machine without asking `time`."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> Self:
        Guard.up_here("datetime.now")
        return cast("Self", _REAL_DATETIME.now(tz))

    @classmethod
    def utcnow(cls) -> Self:
        Guard.up_here("datetime.utcnow")
        return cast("Self", _REAL_DATETIME.now(datetime.UTC).replace(tzinfo=None))


class Guard:
    """A context in which nothing real can be used; raises `Forbidden` at its end too, if code swallowed the first."""

    _up: "Guard | None" = None
    _hooked = False

    def __init__(self) -> None:
        self._violation: Forbidden | None = None
        self._thread = threading.get_ident()
        self._undo = ExitStack()

    def __enter__(self) -> Self:
        if not Guard._hooked:
            sys.addaudithook(_audited)
            Guard._hooked = True
        for owner, names in _FUNCTIONS:
            for name in names.split():
                self._undo.callback(setattr, owner, name, getattr(owner, name))
                setattr(owner, name, self._refusal(owner, name))
        seed = random.Random.seed
        self._undo.callback(setattr, random.Random, "seed", seed)
        setattr(random.Random, "seed", self._seeded(seed))  # noqa: B010  a method is replaced on purpose
        self._undo.callback(setattr, datetime, "datetime", datetime.datetime)
        setattr(datetime, "datetime", _TimelessDateTime)  # noqa: B010  the class cannot be changed, its name can
        self._undo.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.CRITICAL)
        Guard._up = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lower()
        if self._violation is not None and error is not self._violation:
            raise self._violation

    def _lower(self) -> None:
        Guard._up = None
        self._undo.close()

    @contextmanager
    def lifted(self) -> Iterator[None]:
        """Let the harness tell a person how far the run is; nothing of that comes back into it."""
        self._lower()
        try:
            yield
        finally:
            self.__enter__()

    def refuse(self, what: str, depth: int = 2) -> NoReturn:
        """Note the first caller, so many frames up, and raise."""
        frame = sys._getframe(depth)
        violation = Forbidden(f"{what} in a simulated run, by {frame.f_code.co_filename}:{frame.f_lineno}")
        self._violation = self._violation or violation
        raise violation

    @classmethod
    def up_here(cls, what: str) -> None:
        """Refuse a call in the thread of a guard that is up."""
        if cls._up is not None and threading.get_ident() == cls._up._thread:
            cls._up.refuse(what, depth=3)

    def hears(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Refuse the action of an audit event, unless another thread does it or a module is being imported."""
        if threading.get_ident() == self._thread and not _importing():
            self.refuse(f"{event} {arguments[0] if arguments else ''}".strip(), depth=3)

    def _refusal(self, owner: Any, name: str) -> Callable[..., Any]:
        real = getattr(owner, name)

        def refuse(*arguments: Any, **keywords: Any) -> Any:
            if threading.get_ident() == self._thread:
                self.refuse(f"{owner.__name__}.{name}")
            return real(*arguments, **keywords)

        return refuse

    def _seeded(self, seed: Callable[..., None]) -> Callable[..., None]:
        def seeded(generator: random.Random, a: Any = None, version: int = 2) -> None:
            if a is None and threading.get_ident() == self._thread:
                self.refuse("a generator without a seed")
            seed(generator, a, version)

        return seeded


def _audited(event: str, arguments: tuple[Any, ...]) -> None:
    if Guard._up is not None and event.partition(".")[0] in _AUDITED:
        Guard._up.hears(event, arguments)


def _importing() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False
