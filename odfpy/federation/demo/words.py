"""The words of the relays: what each calls the columns of TPC-H, and how one's become another's.

TPC-H has discount and tax as fractions. Each relay says how its own words come of these, and how these come of its
own; so any two of them can be linked.
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
    """A relay's word for a column of TPC-H.

    Attributes:
        name: the word.
        made: the value, made of that of TPC-H, which is `{v}`; None if it is the same.
        back: that of TPC-H, made of the value.
    """

    name: str
    made: str | None = None
    back: str | None = None


@dataclass(frozen=True, slots=True)
class RelayWords:
    """The words of a relay for lineitem, where they are others than those of TPC-H.

    Attributes:
        words: by column of TPC-H.
        more: columns that it has beside those.
        hidden: columns that not everybody sees.
    """

    words: Mapping[str, Word]
    more: tuple[str, ...] = ()
    hidden: frozenset[str] = frozenset(("commitdate", "receiptdate"))

    def word(self, column: str) -> Word:
        """Its word for a column of TPC-H."""
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
"""The relay that never answers; it would have the words of global."""

_ALL: Final = tuple(TABLES)
_LINKS: Final = {
    ("na_us", "na"): _ALL,
    ("na", "global"): _ALL,
    ("global", "apac"): _ALL,
    ("global", "emea"): _ALL,
    ("apac", "emea"): ("lineitem",),
}
"""Pairs of relays that ask each other, and the tables that they ask for."""


def peers_of(relay: str, *, offline: bool) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield those whom a relay asks, and for which tables.

    Args:
        relay: its name.
        offline: whether the one that never answers is among them.
    """
    for (one, other), tables in _LINKS.items():
        if relay in (one, other):
            yield (other if relay == one else one), tables
    if offline and relay == "global":
        yield OFFLINE, ("lineitem",)


def words_of(relay: str) -> RelayWords:
    """The words of a relay, also of the one that is not there."""
    return RELAYS["global" if relay == OFFLINE else relay]


def columns_of(relay: str, table: str) -> dict[str, str]:
    """The words of a relay for the columns of a table, and their types."""
    if table != "lineitem":
        return dict(TABLES[table])
    words = words_of(relay)
    found = {words.word(column).name: dtype for column, dtype in TABLES[table].items()}
    return {**found, **dict.fromkeys(words.more, NUMBER)}
