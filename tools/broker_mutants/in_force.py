"""Puts a mutant in force in this process: every function made of the changed code runs it, whatever refers to it.

Modules hold functions of each other by name (`from x import y`), classes hold methods, tables hold both. So no module
is replaced: the code object of each live function is.
"""

import functools
import gc
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType

from tools.broker_mutants.mutants import BROKER, Mutant, mutated, within

Place = tuple[str, int]
"""A function's qualified name and its first line: the same before and after a change, which moves no line."""
Functions = Mapping[str, Mapping[Place, list[FunctionType]]]
"""Live functions by module of the broker and place."""
Changed = Sequence[tuple[FunctionType, CodeType]]
"""Functions, each with its new code."""


class Unfit(Exception):
    """A mutant is no program: its function cannot be made of the changed code."""


def live_functions() -> Functions:
    """Return the functions that were made of the broker's modules, nested ones that are in use included."""
    functions: dict[str, dict[Place, list[FunctionType]]] = defaultdict(lambda: defaultdict(list))
    for each in gc.get_objects():
        if isinstance(each, FunctionType):
            path = Path(each.__code__.co_filename)
            if path.is_relative_to(BROKER):
                functions[within(path)][_place(each.__code__)].append(each)
    return functions


def changed_functions(mutant: Mutant, functions: Functions) -> list[tuple[FunctionType, CodeType]]:
    """Return the functions that a mutant changes, each with its new code.

    Raises:
        Unfit: there is none, or one cannot have its new code.
    """
    path = BROKER / mutant.module
    module = mutated(mutant, path.read_text(encoding="utf-8"), str(path))
    changed = [
        (function, code)
        for code in _codes(module)
        for function in functions[mutant.module].get(_place(code), ())
        if function.__code__ != code and _outermost(function, mutant)
    ]
    if not changed or any(code.co_freevars != function.__code__.co_freevars for function, code in changed):
        raise Unfit(mutant.key)
    return changed


def put_in_force(changed: Changed) -> None:
    """Let functions have new code, and forget what they returned before."""
    for function, code in changed:
        function.__code__ = code
    forget_results()


def forget_results() -> None:
    """Empty the caches of functions, so that a schedule calls them anew."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("harness."):
            each.cache_clear()


def _outermost(function: FunctionType, mutant: Mutant) -> bool:
    """Return whether a function is the one that is changed or stands within it: lambdas may share a place."""
    name = function.__code__.co_qualname
    return name == mutant.function or name.startswith(f"{mutant.function}.<locals>")


def _place(code: CodeType) -> Place:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects within one, at any depth."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _codes(each)
