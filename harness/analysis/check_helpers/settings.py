"""The settings of runs that are judged together."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from harness.contracts.checks import Settings


class _AtOnce(Settings):
    """Settings of which a field may be a column, and so never equal to others."""

    __slots__ = ()
    __eq__ = object.__eq__
    __hash__ = object.__hash__


def settings_at_once(by_run: Mapping[str, Settings]) -> Settings:
    """Return the settings of runs, given by their ids; a field in which they differ is a column, by `run_id`."""
    first, *others = dict.fromkeys(by_run.values())
    if not others:
        return first
    values = {
        field.name: {run_id: getattr(each, field.name) for run_id, each in by_run.items()} for field in fields(first)
    }
    return _AtOnce(**{name: _value(of_runs) for name, of_runs in values.items()})


def _value(of_runs: Mapping[str, Any]) -> Any:
    runs: dict[Any, list[str]] = {}
    for run_id, value in of_runs.items():
        runs.setdefault(value, []).append(run_id)
    (most, _), *rest = sorted(runs.items(), key=lambda item: -len(item[1]))
    if not rest:
        return most
    differing = [(F.col("run_id").isin(run_ids), _literal(value)) for value, run_ids in rest]
    return first_that_holds(differing).otherwise(_literal(most))


def first_that_holds(branches: Iterable[tuple[Column, Column]]) -> Column:
    """Return the value of the first condition that holds, else null, as one expression that `otherwise` may end.

    Nested, the branches of many runs would be deeper than a plan of Spark Connect may be.
    """
    (condition, value), *others = branches
    column = F.when(condition, value)
    for condition, value in others:
        column = column.when(condition, value)
    return column


def _literal(value: Any) -> Column:
    return F.lit(sorted(value) if isinstance(value, frozenset) else value)
