"""Inference of the schema of JSON records: record by record, so that a file need not be held in memory.

All columns are optional, in order of first appearance. Integers are Int64; together with other numbers all are
Float64. A column, or a member of an object, that is null everywhere has no type yet: its type is Arrow's null. Lists
without non-null items have String items, since an empty list is a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import pyarrow as pa

from odfpy.ingest.read.json_columns import MAX_DIGITS, is_encodable, to_json
from odfpy.ingest.read.json_records import Number, Records, Repeated
from odfpy.ingest.read.typed import Misfit
from odfpy.values import dataclass

UNKNOWN = pa.null()
_KINDS = {str: "String", Number: "number", bool: "Bool", dict: "object", list: "array"}


def infer_schema(objects: Sequence[Mapping[str, Any]], unknown: pa.DataType = UNKNOWN) -> pa.Schema:
    """Return the schema of records.

    Args:
        objects: the records.
        unknown: type of values that are null everywhere.

    Raises:
        Misfit: values of a column have no common type, or an integer is beyond Int64.
    """
    evidence = Evidence(unknown)
    for row, members in enumerate(objects):
        evidence.add(row, members)
    return evidence.schema


def infer_in_turn(
    records: Callable[[], Iterator[Records]], view: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda it: it
) -> pa.Schema:
    """Return the schema of records that arrive in batches.

    Args:
        records: function that returns an iterator over all records, from the beginning.
        view: transforms a record before inspection, for example reordering its members.

    Raises:
        BadValue: values of a column have no common type, or an integer is beyond Int64; the message names the line.
    """
    evidence = Evidence()
    count = 0
    try:
        for some in records():
            for row, members in enumerate(some.objects, count):
                evidence.add(row, view(members))
            count += len(some.objects)
        schema = evidence.schema
    except Misfit as misfit:
        raise misfit.at(_place(records(), misfit.row)) from None
    return schema


def _place(records: Iterator[Records], row: int) -> str:
    """Return the file and line of the record with a number."""
    for some in records:
        if row < len(some.objects):
            return some.place(row)
        row -= len(some.objects)
    raise IndexError(row)


class Evidence:
    """Evidence for the schema, from the records seen so far."""

    def __init__(self, unknown: pa.DataType = UNKNOWN) -> None:
        self._columns: dict[str, _Values] = {}
        self._unknown = unknown

    def add(self, row: int, members: Mapping[str, Any]) -> None:
        """Add a record.

        Args:
            row: number of the record, for errors.
            members: parsed JSON, numbers as `Number`.

        Raises:
            Misfit: a value is incompatible with earlier values of its column.
        """
        _add_members(self._columns, "", row, members)

    @property
    def schema(self) -> pa.Schema:
        """The schema that fits all records.

        Raises:
            Misfit: there is no such schema, since an integer is too large or an object is empty.
        """
        return pa.schema(_fields(self._columns, self._unknown))


@dataclass(slots=True)
class _Values:
    """Evidence for the type of the values at one path.

    Attributes:
        path: path of the value, beginning with the name of the column.
        row: row of the first non-null value.
        kind: common kind of the values, None while there is none.
        has_fractions: whether any number is not an integer.
        too_large: the first integer beyond Int64, with its row.
        inexact: the first integer that is not a valid Float64, with its row.
    """

    path: str
    row: int = -1
    kind: type | None = None
    has_fractions: bool = False
    too_large: tuple[int, Number] | None = None
    inexact: tuple[int, Number] | None = None
    members: dict[str, _Values] = field(default_factory=dict)
    items: _Values | None = None

    def add(self, row: int, value: Any) -> None:
        if value is None:
            return
        kind = type(value)
        if self.kind is None:
            self.row, self.kind = row, kind
        if kind is not self.kind:
            known = _KINDS.get(self.kind, "single value")
            raise Misfit(row, self.path, f"{known} as in the records before it", to_json(value))
        if kind is Number:
            self._add_number(row, value)
        elif kind is dict:
            _add_members(self.members, self.path, row, value)
        elif kind is list:
            self.items = self.items or _Values(f"{self.path}[]")
            for item in value:
                self.items.add(row, item)
        elif kind is Repeated:
            raise Misfit(row, self.path, "single value", to_json(value))

    def _add_number(self, row: int, number: Number) -> None:
        if not number.lstrip("-").isdigit():
            self.has_fractions = True
            return
        too_large = len(number) > MAX_DIGITS or not -(2**63) <= int(number) < 2**63
        if too_large and self.too_large is None:
            self.too_large = row, number
        if self.inexact is None and (too_large or int(float(number)) != int(number)):
            self.inexact = row, number

    def type(self, unknown: pa.DataType) -> pa.DataType:
        if self.kind is None:
            return unknown
        if self.kind is Number:
            problem = self.inexact if self.has_fractions else self.too_large
            if problem is not None:
                raise Misfit(
                    problem[0], self.path, "Float64 without loss" if self.has_fractions else "Int64", problem[1]
                )
            return pa.float64() if self.has_fractions else pa.int64()
        if self.kind is dict:
            if not self.members:  # cannot be stored
                raise Misfit(self.row, self.path, "Struct with members", "{}")
            return pa.struct(_fields(self.members, unknown))
        if self.kind is list:
            return pa.list_(self.items.type(pa.string()) if self.items else pa.string())
        return pa.bool_() if self.kind is bool else pa.string()


def _add_members(columns: dict[str, _Values], path: str, row: int, members: Mapping[str, Any]) -> None:
    for key, value in members.items():
        column = columns.get(key)
        if column is None:
            if not is_encodable(key):  # half a surrogate pair
                raise Misfit(row, path or "?", "object whose keys can be names of columns", to_json(key))
            column = columns[key] = _Values(f"{path}.{key}" if path else key)
        column.add(row, value)


def _fields(columns: Mapping[str, _Values], unknown: pa.DataType) -> list[pa.Field]:
    return [pa.field(key, values.type(unknown)) for key, values in columns.items()]
