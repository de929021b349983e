"""Filters of Ethereum logs: from a condition in SQL to the arguments of `eth_getLogs`.

    address = X'ae78...' and block_number > 13325304 and topic0 = eth_event_selector('Burn(uint256)')

Terms are joined by `and`. A term restricts `address`, `topic0` to `topic3` (`=`, `in`, or several joined by `or`), or
bounds `block_number`. Anything else belongs into the source's preprocessing, and is rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from odfpy.errors import InvalidValue
from odfpy.ethereum.events import selector_of

if TYPE_CHECKING:
    from sqlglot import exp

TOPICS = ("topic0", "topic1", "topic2", "topic3")

_SIZES = {"address": 20, **dict.fromkeys(TOPICS, 32)}
_BLOCK = "block_number"
_HINT = "A filter may compare address, topic0 to topic3 and block_number with constants; use `preprocess` for the rest."


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Filter of logs; None matches all.

    Attributes:
        addresses: addresses of the contracts.
        topics: values of each topic.
        first_block: number of the first block.
        last_block: number of the last block, inclusive; None for the newest.
    """

    addresses: frozenset[bytes] | None = None
    topics: tuple[frozenset[bytes] | None, ...] = (None,) * len(TOPICS)
    first_block: int = 0
    last_block: int | None = None

    def only(self, column: str, values: frozenset[bytes]) -> LogFilter:
        """Return the filter restricted to the given values of a column."""
        if column == "address":
            return replace(self, addresses=_both(self.addresses, values))
        topics = list(self.topics)
        at = TOPICS.index(column)
        topics[at] = _both(topics[at], values)
        return replace(self, topics=tuple(topics))

    def between(self, first: int, last: int | None) -> LogFilter:
        """Return this filter narrowed to a range of blocks."""
        lasts = [block for block in (self.last_block, last) if block is not None]
        return replace(self, first_block=max(self.first_block, first), last_block=min(lasts, default=None))

    @property
    def is_empty(self) -> bool:
        """True if no log can match."""
        return frozenset() in (self.addresses, *self.topics)

    def query(self, first: int, last: int) -> dict[str, Any]:
        """Return the argument of `eth_getLogs` for a range of blocks."""
        query: dict[str, Any] = {"fromBlock": hex(first), "toBlock": hex(last)}
        if self.addresses is not None:
            query["address"] = _hex(self.addresses)
        topics = [None if values is None else _hex(values) for values in self.topics]
        while topics and topics[-1] is None:
            topics.pop()
        return {**query, "topics": topics} if topics else query


def parse_filter(text: str | None) -> LogFilter:
    """Parse a condition; without one, all logs match.

    Raises:
        InvalidValue: the condition is not supported, or can match nothing.
    """
    if text is None or not text.strip():
        return LogFilter()
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        # Of all dialects, this one has X'00ff' as bytes and double quotes around names, as in the reference.
        conditions = sqlglot.parse(text, read="sqlite")
    except (SqlglotError, RecursionError) as error:
        found: list[dict[str, Any]] = getattr(error, "errors", [])
        where = "".join(f" (line {each.get('line')}, column {each.get('col')})" for each in found[:1])
        raise InvalidValue(f"The filter is not a condition in SQL{where}: {_shorten(text)}", hint=_HINT) from error
    if len(conditions) != 1 or conditions[0] is None:
        raise InvalidValue("The filter is not one condition", hint=_HINT)
    wanted = LogFilter()
    for term in _terms(conditions[0]):
        wanted = _narrowed(wanted, term)
    if wanted.is_empty:
        raise InvalidValue("The filter matches nothing: it requires different values at the same time", hint=_HINT)
    return wanted


# --- Terms -----------------------------------------------------------------------------------------------------------


def _terms(condition: exp.Expr) -> Iterator[exp.Expr]:
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.And):
        yield from _terms(condition.left)
        yield from _terms(condition.right)
    else:
        yield condition


def _narrowed(wanted: LogFilter, term: exp.Expr) -> LogFilter:
    from sqlglot import exp

    if isinstance(term, exp.Between) and _column(term.this) == _BLOCK:
        return wanted.between(_number(term.args["low"]), _number(term.args["high"]))
    if isinstance(term, exp.Binary) and not isinstance(term, exp.Or):
        mirrored = _column(term.left) is None
        column = _column(term.right if mirrored else term.left)
        if column == _BLOCK:
            return _bounded(wanted, term, _number(term.left if mirrored else term.right), mirrored=mirrored)
    column, values = _values(term)
    return wanted.only(column, frozenset(values))


def _bounded(wanted: LogFilter, term: exp.Expr, number: int, *, mirrored: bool) -> LogFilter:
    from sqlglot import exp

    swapped: dict[Any, Any] = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
    comparison = swapped.get(type(term), type(term)) if mirrored else type(term)
    bounds: dict[Any, tuple[int, int | None]] = {
        exp.EQ: (number, number),
        exp.GT: (number + 1, None),
        exp.GTE: (number, None),
        exp.LT: (0, number - 1),
        exp.LTE: (0, number),
    }
    if comparison not in bounds:
        raise _unknown(term)
    return wanted.between(*bounds[comparison])


def _values(term: exp.Expr) -> tuple[str, set[bytes]]:
    """Return the column and the values that a term allows for it."""
    from sqlglot import exp

    term = term.unnest()
    if isinstance(term, exp.Or):
        left, right = _values(term.left), _values(term.right)
        if left[0] != right[0]:
            raise InvalidValue(f"The filter joins {left[0]} and {right[0]} by `or`", hint=_HINT)
        return left[0], left[1] | right[1]
    if isinstance(term, exp.In) and (column := _column(term.this)) in _SIZES and not term.args.get("query"):
        return str(column), {_bytes(value, str(column)) for value in term.expressions}
    if isinstance(term, exp.EQ):
        name, value = (term.left, term.right) if _column(term.left) else (term.right, term.left)
        if (column := _column(name)) in _SIZES:
            return str(column), {_bytes(value, str(column))}
    raise _unknown(term)


def _column(node: exp.Expr) -> str | None:
    from sqlglot import exp

    node = node.unnest()
    return node.name.lower() if isinstance(node, exp.Column) and not node.table else None


def _number(node: exp.Expr) -> int:
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal():
        return int(node.name)
    shown = node.sql("sqlite")
    raise InvalidValue(f"The filter compares {_BLOCK} with {shown}, which is not a whole number", hint=_HINT)


def _bytes(node: exp.Expr, column: str) -> bytes:
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Anonymous) and node.name.lower() == "eth_event_selector" and len(node.expressions) == 1:
        (signature,) = node.expressions
        if isinstance(signature, exp.Literal) and signature.is_string:
            return selector_of(signature.name)
    text = ""
    if isinstance(node, exp.HexString):
        text = str(node.this)
    elif isinstance(node, exp.Literal) and node.is_string and node.name[:2].lower() == "0x":
        text = node.name[2:]
    try:
        value = bytes.fromhex(text)
    except ValueError:
        value = b""
    if len(value) != _SIZES[column]:
        raise InvalidValue(
            f"The filter compares {column} with {node.sql('sqlite')[:100]}",
            hint=f"It has to be {_SIZES[column]} bytes, as X'{'00' * 2}...', or eth_event_selector('...') for a topic.",
        )
    return value


def _unknown(term: exp.Expr) -> InvalidValue:
    return InvalidValue(f"The filter has a term that a node cannot evaluate: {term.sql('sqlite')[:200]}", hint=_HINT)


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 200 else f"{flat[:197]}..."


def _both(known: frozenset[bytes] | None, values: frozenset[bytes]) -> frozenset[bytes]:
    return values if known is None else known & values


def _hex(values: frozenset[bytes]) -> list[str]:
    return [f"0x{value.hex()}" for value in sorted(values)]
