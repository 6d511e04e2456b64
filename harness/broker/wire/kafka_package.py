"""Loads kafka-python's message classes without its client, which is not used and takes four times as long to load.

The package's own `__init__` imports the whole client. So an empty package replaces it: submodules are found as usual,
and the first use of a name of the client runs the real `__init__`.
"""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = "kafka"


class _WithoutClient(ModuleType):
    """The package; its client is loaded at the first use."""

    client_loaded = False

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if self.client_loaded or name.startswith("__") or spec is None or spec.loader is None:
            raise AttributeError(f"module {PACKAGE!r} has no attribute {name!r}")
        self.client_loaded = True
        spec.loader.exec_module(self)
        return getattr(self, name)


def stand_in() -> None:
    """Install the empty package, unless the real one is loaded or missing."""
    spec = None if PACKAGE in sys.modules else importlib.util.find_spec(PACKAGE)
    if spec is not None:
        sys.modules[PACKAGE] = _package(spec)


def _package(spec: ModuleSpec) -> ModuleType:
    module = _WithoutClient(PACKAGE, __doc__)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__file__ = spec.origin
    module.__package__ = PACKAGE
    module.__path__ = list(spec.submodule_search_locations or ())
    return module
