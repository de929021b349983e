"""The relays' vocabularies: what each calls the columns of TPC-H, and how values are converted between them.

TPC-H has discount and tax as fractions. Each relay defines how its own columns are computed from TPC-H's and back, so
that any two relays can be mapped to each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

AMOUNT: Final = "Decimal128(15, 2)"
NUMBER: Final = "Float64"

TAX_AMOUNT: Final = "tax_amount"
UNIT_PRICE: Final = "unitprice"

TABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "lineitem": {
        "orderkey": "Int64",
        "partkey": "Int64",
        "suppkey": "Int64",
        "linenumber": "Int32",
        "quantity": NUMBER,
        "extendedprice": NUMBER,
        "discount": NUMBER,
        "tax": NUMBER,
        "returnflag": "Utf8",
        "linestatus": "Utf8",
        "shipdate": "Date32",
        "commitdate": "Date32",
        "receiptdate": "Date32",
        "shipinstruct": "Utf8",
        "shipmode": "Utf8",
        "comment": "Utf8",
    },
    "customer": {
        "custkey": "Int64",
        "name": "Utf8",
        "address": "Utf8",
        "nationkey": "Int64",
        "phone": "Utf8",
        "acctbal": AMOUNT,
        "mktsegment": "Utf8",
        "comment": "Utf8",
    },
    "orders": {
        "orderkey": "Int64",
        "custkey": "Int64",
        "orderstatus": "Utf8",
        "totalprice": AMOUNT,
        "orderdate": "Date32",
        "orderpriority": "Utf8",
        "clerk": "Utf8",
        "shippriority": "Int32",
        "comment": "Utf8",
    },
}
"""The tables of TPC-H, each column with its type, and without the letter that it begins with there."""


@dataclass(frozen=True, slots=True)
class Word:
    """A relay's name for a column of TPC-H, with the conversions of its values.

    Attributes:
        name: the relay's column name.
        made: expression that computes the value from that of TPC-H, which is `{v}`; None if they are equal.
        back: expression that computes TPC-H's value from the relay's.
    """

    name: str
    made: str | None = None
    back: str | None = None


@dataclass(frozen=True, slots=True)
class RelayWords:
    """A relay's vocabulary for lineitem, as far as it differs from that of TPC-H.

    Attributes:
        words: the relay's words, by TPC-H column.
        more: additional columns of the relay.
        hidden: columns that only some users may see.
    """

    words: Mapping[str, Word]
    more: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset(("commitdate", "receiptdate"))

    def word(self, column: str) -> Word:
        """Return the relay's word for a column of TPC-H."""
        return self.words.get(column) or Word(column)


_PERCENT: Final = {
    "discount": Word("discount_percent", "{v} * 100", "{v} / 100"),
    "tax": Word("tax_percent", "{v} * 100", "{v} / 100"),
}
_FRACTIONS: Final = RelayWords({})

RELAYS: Final[Mapping[str, RelayWords]] = {
    "na_us": RelayWords(_PERCENT, (TAX_AMOUNT, UNIT_PRICE)),
    "na": RelayWords(_PERCENT, (TAX_AMOUNT, UNIT_PRICE)),
    "global": RelayWords({}, (UNIT_PRICE,)),
    "emea": _FRACTIONS,
    "apac": RelayWords(
        {"tax": Word("tax", "{v} / .05 - 1", "({v} + 1) * .05")},
        hidden=frozenset(("commitdate", "receiptdate", "partkey")),
    ),
}
"""The relays by name."""

OFFLINE: Final = "offline"
"""The relay that never responds; it would have the vocabulary of global."""

_ALL: Final = tuple(TABLES)
_LINKS: Final = {
    ("na_us", "na"): _ALL,
    ("na", "global"): _ALL,
    ("global", "apac"): _ALL,
    ("global", "emea"): _ALL,
    ("apac", "emea"): ("lineitem",),
}
"""Pairs of relays that query each other, and the tables that they query."""


def peers_of(relay: str, *, offline: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the peers of a relay, each with the tables it is queried for.

    Args:
        relay: name of the relay.
        offline: whether to include the relay that never responds.
    """
    for (first, second), tables in _LINKS.items():
        if relay in (first, second):
            yield (second if relay == first else first), tables
    if offline and relay == "global":
        yield OFFLINE, ("lineitem",)


def words_of(relay: str) -> RelayWords:
    """Return the vocabulary of a relay, including the one that is offline."""
    return RELAYS["global" if relay == OFFLINE else relay]


def columns_of(relay: str, table: str) -> dict[str, str]:
    """Return a relay's names and types for the columns of a table."""
    if table != "lineitem":
        return dict(TABLES[table])
    words = words_of(relay)
    columns = {words.word(column).name: dtype for column, dtype in TABLES[table].items()}
    return {**columns, **dict.fromkeys(words.more, NUMBER)}
