"""Pure functions: expressions that depend on their arguments only, by name and by argument types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.catalyst import Node, children
from odfpy.engine.spark.plan.functions import READS_FILES, is_unsafe, what_instead, why_not_deterministic

_WITHOUT_TEXT: Final = frozenset(("binary", "array", "struct", "map", "variant", "geometry", "geography"))
_XSD: Final = "rowvalidationxsdpath"


@dataclass(frozen=True, slots=True)
class UnsuitableArgument:
    """The reason why an expression may not be used as it is.

    Attributes:
        reason: the rest of a sentence that begins with its text.
        hint: what to write instead.
    """

    reason: str
    hint: str


def unfit(name: str, node: Node) -> UnsuitableArgument | None:
    """Return why an expression is not a function of its arguments, or None when it is.

    Args:
        name: name of its class, relative to Spark's package of expressions.
        node: the expression.
    """
    reason = why_not_deterministic(name)
    if reason is not None:
        return UnsuitableArgument(reason, what_instead(reason))
    look = _LOOKS.get(name)
    return None if look is None else look(node)


def why_unsafe(name: str, node: Node) -> str | None:
    """Return why an expression may not even be used in an ad hoc query, or None; arguments as in `unfit`."""
    unsuitable = unfit(name, node)
    return unsuitable.reason if unsuitable is not None and is_unsafe(unsuitable.reason) else None


def _format(node: Node) -> UnsuitableArgument | None:
    """Refuse values that `format_string` hands to Java, which prints most objects as class and address."""
    types = [value.dataType().typeName() for value in children(node)[1:]]
    type_name = next((name for name in types if name in _WITHOUT_TEXT), None)
    if type_name is None:
        return None
    reason = f"formats a value of type {type_name.upper()}, which Java prints as an address in memory"
    return UnsuitableArgument(
        reason, "Convert it to text first: hex(...), to_json(...), array_join(...) or CAST(... AS STRING)."
    )


def _xml(node: Node) -> UnsuitableArgument | None:
    """Refuse an XML Schema, which would be read from a path."""
    keys = node.options().keysIterator()
    while keys.hasNext():
        if keys.next().lower() == _XSD:
            return UnsuitableArgument(READS_FILES, "Omit the option rowValidationXSDPath.")
    return None


_LOOKS: Final[dict[str, Callable[[Node], UnsuitableArgument | None]]] = {
    "FormatString": _format,
    "XmlToStructs": _xml,
    "SchemaOfXml": _xml,
}
