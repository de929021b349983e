r"""The form of JSON whose hash a commitment holds: that of the reference implementation's node.

Like RFC 8785 it has sorted keys and no spaces, and for texts in ASCII and whole numbers it is the same. But other
characters are escaped (`\u017e`, lower case), keys sort by code point, fractions are written as `1.5E-10`, and whole
numbers have no bounds. Proofs are exchanged with such nodes, so this form is the one for them; what only odfpy signs
has RFC 8785's (`odfpy.codec.canonical_json`).
"""

from __future__ import annotations

from decimal import Decimal
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from odfpy.errors import MalformedData


def commitment_json(tree: Any) -> bytes:
    """Return a tree of dictionaries, lists, texts, numbers, booleans and None in the form that is hashed, in ASCII.

    Raises:
        MalformedData: something in it is not JSON, such as a NaN.
    """
    return _write(tree).encode("ascii")


def _write(tree: Any) -> str:
    match tree:
        case None:
            return "null"
        case bool():
            return "true" if tree else "false"
        case str():
            return encode_basestring_ascii(tree)
        case int():
            return str(tree)
        case float():
            return _fraction(tree)
        case dict():
            members = (f"{encode_basestring_ascii(key)}:{_write(tree[key])}" for key in sorted(tree))
            return "{" + ",".join(members) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_write, tree)) + "]"
        case _:
            raise MalformedData(f"No canonical JSON of {type(tree).__name__}")


def _fraction(value: float) -> str:
    """Return the shortest digits that are this number, the first before the point."""
    if not isfinite(value):
        raise MalformedData(f"No canonical JSON: {value} is not a number of JSON")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    exponent = int(exponent) + len(text) - 1 if text else 0
    text = text.rstrip("0") or "0"
    point = "." if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{point}{text[1:]}E{exponent}"
