"""Quoting of dataset names in a query, as its dialect requires.

Names of datasets have dots and hyphens, which SQL parses as catalogs and subtractions. Users omit the quotes, or write
those of the other dialect. In the position of a table, and before the dot of a column, all of these mean the dataset:

    acme.daily-total    "acme.daily-total"    `acme.daily-total`    acme."daily-total"

Only names of datasets are changed: everything else is left to the engine. Messages show the query with these quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odfpy.query.dialects import Dialect

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

_PIECE: Final = r'(?:"[^"\n]+"|`[^`\n]+`|\w+)'
_NAME: Final = re.compile(rf"{_PIECE}(?:[.-]{_PIECE})*(?:@[\w.-]+)?", re.ASCII)
_PARTS: Final = re.compile(r'"[^"]*"|`[^`]*`|(?P<joint>[.@-])|\w+', re.ASCII)
_NEEDS_NO_QUOTES: Final = re.compile(r"\w+", re.ASCII)
_DIFFERENCE: Final = re.compile(r"\w-\w", re.ASCII)
_PROJECTION: Final = re.compile(r"odf_\w+", re.IGNORECASE)
_AFTER_FROM: Final = frozenset(
    """SELECT WHERE GROUP_BY HAVING ORDER_BY SORT_BY CLUSTER_BY DISTRIBUTE_BY WINDOW QUALIFY LIMIT OFFSET FETCH UNION
    INTERSECT EXCEPT""".split()  # noqa: SIM905
)


def quote_datasets(text: str, dialect: Dialect, is_dataset: Callable[[str], bool]) -> str:
    """Return a query with all names of datasets quoted as in its dialect; line breaks are preserved.

    Args:
        text: the query.
        dialect: the dialect of the query.
        is_dataset: returns whether a name is that of a dataset.
    """
    for one in reversed(_misquoted(text, dialect, is_dataset)):
        text = text[: one.start] + dialect.quoted(one.name) + text[one.end :]
    return text


def quotes_missing(text: str, dialect: Dialect, is_dataset: Callable[[str], bool]) -> str | None:
    """Return a hint on the correct quotes of names in a query; None if they are correct.

    A recorded query is stored as its author wrote it: other implementations, which also run it, need the quotes.

    Args:
        text: the query.
        dialect: the dialect of the query.
        is_dataset: returns whether a name is that of a dataset.
    """
    names = {text[one.start : one.end]: dialect.quoted(one.name) for one in _misquoted(text, dialect, is_dataset)}
    wrong = [f"{right} instead of {written}" for written, right in names.items() if written != right]
    return f"Write {' and '.join(wrong)}." if wrong else None


def _misquoted(text: str, dialect: Dialect, is_dataset: Callable[[str], bool]) -> list[_Written]:
    """Return the names that need quotes, in order, each spelled like the table that it refers to."""
    from sqlglot.errors import TokenError

    try:
        tokens = dialect.tokens(text)
    except TokenError:
        return []  # the engine reports the error
    tables = list(_named(text, _starts_of_tables(tokens), is_dataset, is_table=True))
    spelt = {table.name.lower(): table.name for table in reversed(tables)}
    starts = [token.start for before, token in zip([None, *tokens], tokens, strict=False) if not _is(before, "DOT")]
    qualifiers = _named(text, starts, lambda name: name.lower() in spelt)
    found = {
        one.start: one
        for one in (*(qualifier for qualifier in qualifiers if text[qualifier.end : qualifier.end + 1] == "."), *tables)
    }
    return [
        _Written(spelt[one.name.lower()], one.start, one.end)
        for _, one in sorted(found.items())
        if not _NEEDS_NO_QUOTES.fullmatch(text, one.start, one.end)  # perhaps defined by WITH
    ]


@dataclass(frozen=True, slots=True)
class _Written:
    """A name and its position in a text."""

    name: str
    start: int
    end: int


def _named(
    text: str, starts: Iterable[int], is_name: Callable[[str], bool], *, is_table: bool = False
) -> Iterator[_Written]:
    """Yield the longest name that begins at each offset: in `acme.tx.amount`, the dataset may be `acme.tx`.

    Args:
        text: the query.
        starts: the offsets.
        is_name: returns whether a name is one of those searched for.
        is_table: no subtraction is possible there, so anything with a hyphen is a name, even if misspelled.
    """
    for start in starts:
        written = _NAME.match(text, start)
        if written is None:
            continue
        joints = [part.start() for part in _PARTS.finditer(text, start, written.end()) if part["joint"]]
        for end in (written.end(), *reversed(joints)):
            name = re.sub('["`]', "", text[start:end])
            if is_name(name):
                yield _Written(name, start, end)
                break
        else:
            if is_table and _DIFFERENCE.search(text, start, written.end()):
                yield _Written(re.sub('["`]', "", written.group()), start, written.end())


@dataclass(slots=True)
class _Level:
    """The state of the tokens in a pair of parentheses.

    Attributes:
        is_query: whether it contains a SELECT, so that FROM begins tables and is not part of a call such as `extract`.
        is_from: whether the position is within the list of tables, so that a comma is followed by a table.
    """

    is_query: bool = False
    is_from: bool = False


def _starts_of_tables(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the offsets of table names: after FROM, JOIN and a comma between tables, and in `odf_current(...)`."""
    levels, is_next = [_Level()], False
    for at, token in enumerate(tokens):
        kind, level = token.token_type.name, levels[-1]
        before = tokens[at - 1] if at else None
        if kind == "L_PAREN":
            levels.append(_Level(is_from=is_next))
            is_next = is_next or (before is not None and _PROJECTION.fullmatch(before.text) is not None)
        elif kind == "R_PAREN":
            levels, is_next = levels[:-1] or [_Level()], False
        elif kind in ("COMMA", "JOIN"):
            level.is_from = level.is_from or kind == "JOIN"
            is_next = level.is_from
        elif kind == "FROM":
            level.is_from = is_next = level.is_query and not _is(before, "DISTINCT")  # a IS DISTINCT FROM b
        elif kind in _AFTER_FROM:
            level.is_from = is_next = False
            level.is_query = level.is_query or kind == "SELECT"
        elif is_next:
            yield token.start
            is_next = False


def _is(token: Token | None, kind: str) -> bool:
    return token is not None and token.token_type.name == kind
