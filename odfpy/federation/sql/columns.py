"""Lookup of columns by name: those of a schema with known types, or those of another relay, with unknown types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import pyarrow as pa

from odfpy.errors import did_you_mean
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Column, Expression
from odfpy.federation.sql.types import UNKNOWN, plain

Columns: TypeAlias = Callable[[str], Expression]
"""Resolves a column name."""

Types: TypeAlias = "pa.Schema | Mapping[str, pa.DataType]"


def columns_of(types: Types | None) -> Columns:
    """Return a lookup for the columns of a table; case-insensitive where that is unambiguous.

    Args:
        types: names and types; None for a table of another relay, in which any name is accepted.
    """
    if types is None:
        return lambda name: Column(name, UNKNOWN)
    known = {field.name: field.type for field in types} if isinstance(types, pa.Schema) else types
    folded: dict[str, str | None] = {}
    for name in known:
        folded[name.lower()] = None if name.lower() in folded else name

    def find(name: str) -> Column:
        known_name = name if name in known else folded.get(name.lower())
        if known_name is None:
            raise InvalidFragment(
                f"There is no column {name!r}",
                hint=did_you_mean(name, list(known), otherwise="Those of the entity are there."),
            )
        return Column(known_name, plain(known[known_name]))

    return find
