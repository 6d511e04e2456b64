"""Modules that are imported when something of them is used, and not before.

Great Expectations imports statistics and charts for a few of its expectations, whoever uses which; that is two fifths
of what its import costs. The standard library's `LazyLoader` does not help: the import statement itself looks into a
module that is there already, which makes that loader load it.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """A module that becomes itself when it is asked for anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__} has not been imported yet and has no {name}")
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
            self.__dict__.update(importlib.import_module(self.__name__).__dict__)
        return self.__dict__[name] if name in self.__dict__ else getattr(sys.modules[self.__name__], name)


def import_later(*names: str) -> None:
    """Let the modules of these names be imported when they are used; nothing happens to one that is there already."""
    for name in names:
        spec = importlib.util.find_spec(name) if name not in sys.modules else None
        if spec is not None:
            module = _Later(name)
            module.__spec__ = spec
            sys.modules[name] = module
