"""Constructors for kafka-python's message classes, generated once a class, as in `dataclasses`.

The package's own constructor iterates over all fields of the specification at every call, which was an eighth of a
broker's work. A generated one sets the same slots: given values, and at once the defaults that the package looks up on
reading. Only calls of the package's own client (positional arguments, a version from the start) still use the package's
constructor.
"""

from collections.abc import Callable, Iterable
from typing import Any

_ABSENT = object()
"""Stands for a tagged field that was not given, and is not encoded."""
_OF_A_MESSAGE = ("_header", "_min_version", "_max_version")
_OF_ALL = ("_version", "tags", "unknown_tags")


def generate_constructors(message_class: Any) -> None:
    """Give a message class, and the classes of all its fields, generated constructors."""
    _generate(message_class, (*_OF_A_MESSAGE, *_OF_ALL))


def _generate(container: Any, empty: Iterable[str]) -> None:
    fields = container._struct.fields.values()  # kafka-python is pinned to the exact version
    container.__init__ = _constructor(fields, empty, container.__init__)
    for field in fields:
        if field.is_struct() or field.is_struct_array():
            _generate(field.data_class, _OF_ALL)


def _constructor(fields: Iterable[Any], empty: Iterable[str], of_package: Callable[..., None]) -> Callable[..., None]:
    plain = {field.name: field.default for field in fields if field._tag is None}
    tagged = [field.name for field in fields if field._tag is not None]
    parameters = [*(f"{name}=_{name}" for name in plain), *(f"{name}=_ABSENT" for name in tagged)]
    values = ", ".join(f"{name}={name}" for name in [*plain, *tagged])
    lines = [
        f"def __init__(self, *args, {', '.join(['version=None', *parameters])}, **others):",
        " if args or others or version is not None:",
        f"  return _in_the_packages_way(self, args, dict(others, {', '.join(['version=version', values])}))",
        *(f" self.{name} = None" for name in empty),
        *(f" self.{name} = {name}" for name in plain),
    ]
    for name in tagged:
        lines += [f" if {name} is not _ABSENT:", f"  self.{name} = {name}"]
        lines += [f"  self.tags = {{*(self.tags or ()), {name!r}}}"]

    def in_the_packages_way(container: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        of_package(container, *args, **{name: value for name, value in keywords.items() if value is not _ABSENT})

    names = {"_ABSENT": _ABSENT, "_in_the_packages_way": in_the_packages_way}
    names |= {f"_{name}": default for name, default in plain.items()}
    made: dict[str, Any] = {}
    exec("\n".join(lines), names, made)  # noqa: S102  the names are those of the pinned package's specifications
    constructor: Callable[..., None] = made["__init__"]
    return constructor
