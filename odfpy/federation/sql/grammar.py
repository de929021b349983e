"""The grammar of expressions: the supported nodes of sqlglot, each with its supported arguments. All others are
rejected.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from odfpy.federation.sql.types import BOOL, DATE, DOUBLE, INT, TEXT

_TWO: Final = ("this", "expression")
HARMLESS: Final = {
    "Div": ("typed", "safe"),
    "Count": ("big_int",),
    "DPipe": ("safe",),
    "Cast": ("_type",),
    "Literal": ("is_string",),
    "Column": ("table", "db", "catalog"),
}
"""Arguments of nodes that may be ignored."""

COMPARING: Final = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "between", "nullif"))
"""Comparison operators."""

OWN: Final[dict[str, tuple[str, ...]]] = {
    "Column": ("this",),
    "Literal": ("this",),
    "Boolean": ("this",),
    "Null": (),
    "Paren": ("this",),
    "And": ("this", "expression"),
    "Or": ("this", "expression"),
    "Neg": ("this",),
    "In": ("this", "expressions"),
    "Is": ("this", "expression", "negate"),
    "Like": ("this", "expression"),
    "Case": ("this", "ifs", "default"),
    "Coalesce": ("this", "expressions"),
    "Substring": ("this", "start", "length"),
    "Extract": ("this", "expression"),
    "Count": ("this",),
    "Div": ("this", "expression"),
    "Cast": ("this", "to"),
    "Add": ("this", "expression"),
    "Sub": ("this", "expression"),
    "Year": ("this",),
    "Month": ("this",),
    "Day": ("this",),
    "TsOrDsToDate": ("this",),
}
"""Trees that the reader has a method for, and their parts."""


OPERATORS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "EQ": ("eq", _TWO),
    "NEQ": ("ne", _TWO),
    "LT": ("lt", _TWO),
    "LTE": ("le", _TWO),
    "GT": ("gt", _TWO),
    "GTE": ("ge", _TWO),
    "Not": ("not", ("this",)),
    "Between": ("between", ("this", "low", "high")),
    "Mul": ("mul", _TWO),
    "Abs": ("abs", ("this",)),
    "Nullif": ("nullif", _TWO),
    "Lower": ("lower", ("this",)),
    "Upper": ("upper", ("this",)),
    "DPipe": ("concat", _TWO),
    "Length": ("char_length", ("this",)),
    "Sum": ("sum", ("this",)),
    "Min": ("min", ("this",)),
    "Max": ("max", ("this",)),
}
"""Nodes that represent operators: the operator's name, and the arguments of the node."""


TYPES: Final = {
    "BOOLEAN": BOOL,
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": INT,
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINT": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "DOUBLE": DOUBLE,
    "TEXT": TEXT,
    "VARCHAR": TEXT,
    "DATE": DATE,
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP_NS": pa.timestamp("ns"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
}
"""Types by sqlglot's names."""
