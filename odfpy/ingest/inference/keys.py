"""Candidates for primary keys: single or combined columns that distinguish all rows of a sample."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.schemas import schema as odf
from odfpy.ingest.inference.columns import Column
from odfpy.ingest.inference.types import is_money, words_of

_OWN: Final = frozenset({"id", "uuid", "guid"})
_EVENTS: Final = frozenset(
    {"event", "transaction", "tx", "trade", "order", "message", "log", "row", "record", "invoice", "payment", "booking"}
)
_MAX_COLUMNS: Final = 16  # maximum number of columns combined in pairs
_MAX_KEYS: Final = 6
_IDS: Final = frozenset({"id", "uuid", "guid", "key", "code", "isin", "iban", "sku", "ean", "isbn", "hash", "number"})
_NAMES: Final = frozenset({"name", "symbol", "ticker", "slug", "email", "login", "username", "iso", "abbreviation"})


@dataclass(frozen=True, slots=True)
class Key:
    """Columns that distinguish the sampled rows.

    Attributes:
        columns: names of the columns; several if fewer do not suffice, or only by chance.
        is_named: whether a column's name suggests an identifier.
    """

    columns: tuple[str, ...]
    is_named: bool


def find_keys(columns: Sequence[Column], rows: pa.Table, event_time: str | None) -> tuple[Key, ...]:
    """Return the candidates, best first: columns named like identifiers precede others.

    Args:
        columns: columns of the source.
        rows: the sampled rows, in their types.
        event_time: the column of the event time, None if there is none.
    """
    if not rows.num_rows:
        return ()
    fit = [column for column in columns if _may_be_key(column, rows.column(column.name))]
    order = {
        column.name: (_rank(column.name), not isinstance(column.plain, odf.String), number)
        for number, column in enumerate(fit)
    }
    fit.sort(key=lambda column: order[column.name])
    alone = [column.name for column in fit if _is_unique(rows, (column.name,))]
    found = [Key((name,), _rank(name) < _UNNAMED) for name in alone if name != event_time]
    rest = [column.name for column in fit if column.name not in alone][:_MAX_COLUMNS]
    found += _together(rows, rest, event_time)
    if event_time is not None and event_time in alone:
        found.append(Key((event_time,), is_named=False))
        # Times may differ by chance, and several things have times of their own.
        found += [Key((event_time, name), _rank(name) < _UNNAMED) for name in rest[:1]]
    return tuple(sorted(found, key=lambda key: (not key.is_named, event_time not in key.columns))[:_MAX_KEYS])


_UNNAMED: Final = 3


def _rank(name: str) -> int:
    words = words_of(name)
    if words[-1:] == ["id"] and len(words) == 1:
        return 0
    if set(words[-1:]) & _IDS or set(words[:1]) & {"id", "uuid"}:
        return 1
    return 2 if set(words[-1:]) & _NAMES else _UNNAMED


def names_events(name: str) -> bool:
    """Return whether a name suggests an identifier of events: `id` and `trade_id`, but not `isin` or `city_id`."""
    words = words_of(name)
    return words[-1:] != [] and words[-1] in _OWN and all(word in _EVENTS for word in words[:-1])


def _may_be_key(column: Column, values: pa.ChunkedArray) -> bool:
    """Return whether a column has no nulls and its values compare exactly; amounts of money are never identifiers."""
    kinds = odf.Float16 | odf.Float32 | odf.Float64 | odf.List | odf.Struct | odf.Map | odf.Bool | odf.Binary
    return not values.null_count and not isinstance(column.plain, kinds) and not is_money(column.name)


def _together(rows: pa.Table, names: Sequence[str], event_time: str | None) -> Iterator[Key]:
    """Yield unique pairs, first those with the event time; then the event time combined with two other columns."""
    times = [event_time] if event_time in names else []
    others = [name for name in names if name != event_time]
    pairs = [*((str(time), name) for time in times for name in others), *combinations(others, 2)]
    unique = [pair for pair in pairs if _is_unique(rows, pair)]
    for pair in unique:
        yield Key(pair, any(_rank(name) < _UNNAMED for name in pair if name != event_time))
    if not any(event_time in pair for pair in unique):
        for time in times:
            for pair in combinations(others[: _MAX_COLUMNS // 2], 2):
                if _is_unique(rows, (str(time), *pair)):
                    yield Key((str(time), *pair), any(_rank(name) < _UNNAMED for name in pair))


def _is_unique(rows: pa.Table, names: tuple[str, ...]) -> bool:
    if len(names) == 1:
        return bool(pc.count_distinct(rows.column(names[0])).as_py() == rows.num_rows)
    chosen = pa.table({str(number): rows.column(name) for number, name in enumerate(names)})
    return bool(chosen.group_by(chosen.column_names).aggregate([]).num_rows == rows.num_rows)
