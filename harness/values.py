"""Values that are made by the thousand: dataclasses that cost no more to make than to fill.

A frozen dataclass sets each of its fields through `object.__setattr__`, which takes two to three times as long. These
are frozen for the type checker, which refuses every assignment, and plain slots at run time. They are declared like any
dataclass: `@value_class(frozen=True, slots=True, kw_only=True)`. Stdlib only: the broker imports this module too.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

__all__ = ["value_class"]

if TYPE_CHECKING:
    from dataclasses import dataclass as value_class
else:

    def value_class(*, frozen: bool, **options: Any) -> Callable[[type], type]:
        """Make a class a dataclass that compares and hashes by its fields."""
        return dataclass(unsafe_hash=frozen, **options)
