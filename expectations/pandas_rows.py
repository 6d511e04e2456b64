"""How does pandas carry out the operations on rows? See `rows`."""

from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
from typing_extensions import override

from expectations.rows import Only, Rows


def judged_rows(frame: pd.DataFrame, named: Sequence[str], only: Only) -> "pd.Series[bool]":
    """Return whether a row is judged: no named column is null, and it holds what it must."""
    judged = frame[list(named)].notna().all(axis="columns")
    for name, value in only.items():
        judged &= (frame[name] == value).fillna(False).astype(bool)
    return judged


class PandasRows(Rows):
    """The rows of a pandas frame whose index is unique; all of them are judged."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame.convert_dtypes()

    @override
    def __getitem__(self, name: str) -> "pd.Series[Any]":
        return self._frame[name]

    @override
    def previous(self, name: str, *, order: str, keys: Sequence[str]) -> "pd.Series[Any]":
        return self._shifted(self._in_order(self._frame[name], order), keys)

    @override
    def highest_before(self, name: str, *, order: str, keys: Sequence[str]) -> "pd.Series[Any]":
        values = self._in_order(self._frame[name], order)
        return self._shifted(self._grouped(values, keys).cummax(), keys)

    @override
    def last_before(self, values: "pd.Series[Any]", *, order: str, keys: Sequence[str]) -> "pd.Series[Any]":
        return self._shifted(self._grouped(self._in_order(values, order), keys).ffill(), keys)

    @override
    def all_equal(self, values: "pd.Series[Any]", *, keys: Sequence[str]) -> "pd.Series[Any]":
        return self._grouped(values, keys).transform("nunique") <= 1

    @override
    def where(self, condition: "pd.Series[Any]", values: "pd.Series[Any]") -> "pd.Series[Any]":
        return values.where(condition.fillna(False))

    @override
    def size(self, name: str) -> "pd.Series[Any]":
        return self._frame[name].map(len)

    @override
    def distinct_size(self, name: str) -> "pd.Series[Any]":
        return self._frame[name].map(lambda elements: len(set(elements)))

    @override
    def contains(self, name: str, element: str) -> "pd.Series[Any]":
        pairs = zip(self._frame[name], self._frame[element], strict=True)
        return self._booleans(member in elements for elements, member in pairs)

    @override
    def is_subset(self, name: str, other: str) -> "pd.Series[Any]":
        pairs = zip(self._frame[name], self._frame[other], strict=True)
        return self._booleans(set(part) <= set(whole) for part, whole in pairs)

    def _booleans(self, values: Iterable[bool]) -> "pd.Series[Any]":
        return pd.Series(list(values), index=self._frame.index, dtype="boolean")

    def _in_order(self, values: "pd.Series[Any]", order: str) -> "pd.Series[Any]":
        return values.loc[self._frame[order].sort_values(kind="stable").index]

    def _grouped(self, values: "pd.Series[Any]", keys: Sequence[str]) -> Any:
        by = [self._frame[key].loc[values.index] for key in keys]
        return values.groupby(by or [pd.Series(0, index=values.index)], sort=False)

    def _shifted(self, values: "pd.Series[Any]", keys: Sequence[str]) -> "pd.Series[Any]":
        return self._grouped(values, keys).shift().reindex(self._frame.index)
