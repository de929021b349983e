"""Writing expressions as SQL: readable for EXPLAIN, and for the engines of sources, always with the same meaning.

Every operation is in parentheses, every name is quoted. Of untrusted input, only names and constants enter the text,
and these are quoted here.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, ClassVar, Final

import pyarrow as pa

from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Call, Column, Constant, Expression
from odfpy.federation.sql.types import kind_of

_SIGNS: Final = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "sub": "-", "mul": "*",
    "concat": "||", "and": "AND", "or": "OR",
}  # fmt: skip
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "in", "between")


class Writer:
    """A writer of expressions as SQL; subclassed for each engine, and for readable text."""

    name: ClassVar[str] = "fragment"
    types: ClassVar[Mapping[str, str]] = {
        "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT",
        "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT",
        "float": "FLOAT", "double": "DOUBLE", "string": "VARCHAR", "date32[day]": "DATE",
        "timestamp[s]": "TIMESTAMP_S", "timestamp[ms]": "TIMESTAMP_MS", "timestamp[us]": "TIMESTAMP",
        "timestamp[ns]": "TIMESTAMP_NS", "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
    }  # fmt: skip
    decimal: ClassVar[str] = "DECIMAL"

    def write(self, node: Expression) -> str:
        """Return an expression as SQL.

        Raises:
            InvalidFragment: the engine has no equivalent.
        """
        if isinstance(node, Column):
            table = "" if node.table is None else f"{self.quoted(node.table)}."
            return f"{table}{self.quoted(node.name)}"
        if isinstance(node, Constant):
            return self.constant(node)
        if node.operator == "cast":
            return self.cast(node.arguments[0], node.dtype)
        if node.operator in _COMPARISONS:
            return self._comparison(node)
        own = getattr(self, f"_{node.operator}", None)
        if own is not None:
            return str(own(*node.arguments))
        texts = [self.write(argument) for argument in node.arguments]
        if node.operator in _SIGNS:
            return f"({f' {_SIGNS[node.operator]} '.join(texts)})"
        return f"{node.operator}({', '.join(texts)})"

    @staticmethod
    def quoted(name: str) -> str:
        """Quote a name exactly.

        Args:
            name: any text without NUL characters.
        """
        if "\0" in name:
            raise InvalidFragment("A name has a character 0")
        return '"' + name.replace('"', '""') + '"'

    @staticmethod
    def text(value: str) -> str:
        """Return a string literal.

        Args:
            value: any text without NUL characters.
        """
        if "\0" in value:
            raise InvalidFragment("A text has a character 0")
        return "'" + value.replace("'", "''") + "'"

    def type_name(self, dtype: pa.DataType) -> str:
        """Return the name of a type.

        Args:
            dtype: a plain type.

        Raises:
            InvalidFragment: the engine has no such type.
        """
        if kind_of(dtype) == "decimal":
            return f"{self.decimal}({dtype.precision}, {dtype.scale})"
        try:
            return self.types[str(dtype)]
        except KeyError:
            raise InvalidFragment(f"{self.name} has no type {dtype}") from None

    def constant(self, node: Constant) -> str:
        """Return a literal, of exactly its type where that matters.

        Args:
            node: the constant.
        """
        value: Any = node.value
        match value:
            case None:
                return "NULL" if kind_of(node.dtype) in ("unknown", "opaque") else self._as("NULL", node.dtype)
            case bool():
                return "TRUE" if value else "FALSE"
            case int() if kind_of(node.dtype) == "int":
                if value == -(1 << 63):
                    return self._as(self.text(str(value)), node.dtype)
                return f"({value})" if value < 0 else str(value)
            case Decimal():
                return self._as(self.text(f"{value:f}"), node.dtype)
            case float():
                text = repr(value) if isfinite(value) else "NaN" if isnan(value) else f"{'-' * (value < 0)}Infinity"
                return self._as(self.text(text), node.dtype)
            case str():
                return self.text(value)
            case datetime():
                return self._as(self.text(value.isoformat(sep=" ")), node.dtype)
            case date():
                return self._as(self.text(value.isoformat()), node.dtype)
        raise InvalidFragment(f"There are no constants of type {node.dtype}")

    def cast(self, value: Expression, dtype: pa.DataType) -> str:
        """Return a cast; types without a name are left to the client.

        Args:
            value: the value.
            dtype: a plain type.
        """
        kinds = (kind_of(value.dtype), kind_of(dtype))
        if kinds[1] == "opaque":
            return self.write(value)
        return (
            self.number_cut_off(value, dtype)
            if kinds[1] == "int" and kinds[0] in ("float", "decimal")
            else (self._as(self.write(value), dtype))
        )

    def number_cut_off(self, value: Expression, dtype: pa.DataType) -> str:
        """Return a truncating cast of a number to an integer.

        Args:
            value: the number.
            dtype: the integer type.
        """
        return self._as(self.write(value), dtype)

    def ordered(self, value: Expression, *, descending: bool, nulls_first: bool) -> str:
        """Return an element of ORDER BY.

        Args:
            value: the sort key.
            descending: whether the greatest value comes first.
            nulls_first: whether NULL comes first.
        """
        direction = "DESC" if descending else "ASC"
        return f"{self.comparable(value)} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"

    def comparable(self, value: Expression) -> str:
        """Return a value in the form in which it is compared and ordered.

        Args:
            value: the value.
        """
        return self.write(value)

    def group_key(self, value: Expression) -> str:
        """Return a value in the form in which rows are grouped by it.

        Args:
            value: the value.
        """
        return self.comparable(value) if kind_of(value.dtype) == "float" else self.write(value)

    # --- Operators that need special treatment ---

    def _as(self, text: str, dtype: pa.DataType) -> str:
        return f"CAST({text} AS {self.type_name(dtype)})"

    def _comparison(self, node: Call) -> str:
        first, *others = node.arguments
        left = self.comparable(first)
        right = [self.comparable(other) for other in others]
        if node.operator == "in":
            return f"({left} IN ({', '.join(right)}))"
        if node.operator == "between":
            return f"({left} BETWEEN {right[0]} AND {right[1]})"
        return f"({left} {_SIGNS[node.operator]} {right[0]})"

    def _not(self, value: Expression) -> str:
        return f"(NOT {self.write(value)})"

    def _neg(self, value: Expression) -> str:
        return f"(- {self.write(value)})"

    def _is_null(self, value: Expression) -> str:
        return f"({self.write(value)} IS NULL)"

    def _div(self, left: Expression, right: Expression) -> str:
        return f"({self.write(left)} / {self.write(right)})"

    def _like(self, value: Expression, pattern: Expression) -> str:
        return f"({self.write(value)} LIKE {self.write(pattern)})"

    def _case(self, *parts: Expression) -> str:
        texts = [self.write(part) for part in parts]
        pairs = zip(texts[:-1:2], texts[1:-1:2], strict=True)
        return f"CASE {' '.join(f'WHEN {condition} THEN {result}' for condition, result in pairs)} ELSE {texts[-1]} END"

    def _substring(self, *parts: Expression) -> str:
        return f"substring({', '.join(map(self.write, parts))})"

    def _count_all(self) -> str:
        return "count(*)"

    def _year(self, value: Expression) -> str:
        return f"EXTRACT(YEAR FROM {self.write(value)})"

    def _month(self, value: Expression) -> str:
        return f"EXTRACT(MONTH FROM {self.write(value)})"

    def _day(self, value: Expression) -> str:
        return f"EXTRACT(DAY FROM {self.write(value)})"


class TextWriter(Writer):
    """A writer of readable SQL."""

    def constant(self, node: Constant) -> str:
        match node.value:
            case Decimal():
                return f"{node.value:f}"
            case float() if isfinite(node.value):
                return repr(node.value)
            case datetime():
                return f"TIMESTAMP {self.text(node.value.isoformat(sep=' '))}"
            case date():
                return f"DATE {self.text(node.value.isoformat())}"
            case None:
                return "NULL"
        return super().constant(node)


FRAGMENT: Final = TextWriter()
