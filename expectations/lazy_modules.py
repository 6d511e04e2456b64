"""Delays a module's import until its first use, or hides it.

For a few of its expectations Great Expectations imports statistics, charts and JSON schemas even if none of them
is used, and optional packages (databases, Spark's machine learning) wherever installed; that is more than
half of what its import costs. The standard library's `LazyLoader` does not help: an import statement reads an
attribute of a module that is imported already, which makes that loader load it.
"""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """A module that is imported at the first use of one of its attributes."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__} has not been imported yet and has no {name}")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            self.__dict__.update(importlib.import_module(self.__name__).__dict__)
        return self.__dict__[name] if name in self.__dict__ else getattr(sys.modules[self.__name__], name)


def import_lazily(*names: str) -> None:
    """Import these modules at their first use; one that is imported already stays as it is."""
    for name in names:
        spec = importlib.util.find_spec(name) if name not in sys.modules else None
        if spec is not None:
            module = _LazyModule(name)
            module.__spec__ = spec
            sys.modules[name] = module


@contextmanager
def passed_over(*names: str) -> Iterator[None]:
    """Make these modules look uninstalled, to all threads; what is imported already stays."""
    modules: dict[str, ModuleType | None] = sys.modules  # type: ignore[assignment]  # None is how Python is told so
    absent = [name for name in names if name not in modules]
    modules.update(dict.fromkeys(absent))
    try:
        yield
    finally:
        for name in absent:
            del modules[name]


@contextmanager
def light_import() -> Iterator[None]:
    """Import Great Expectations without the modules that only unused expectations need."""
    import_lazily("altair", "jsonschema", "scipy.stats")
    with passed_over("pyspark.ml", "sqlalchemy"):
        yield
