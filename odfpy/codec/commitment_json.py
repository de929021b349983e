r"""The canonical JSON of commitments, as the reference implementation's node hashes it.

Like RFC 8785 it has sorted keys and no spaces, and for ASCII text and integers it is the same. But other characters
are escaped (`\u017e`, lower case), keys sort by code point, fractions are written as `1.5E-10`, and integers are
unlimited. It is used for proofs, which are exchanged with such nodes; everything that only odfpy signs uses RFC 8785
(`odfpy.codec.canonical_json`).
"""

from __future__ import annotations

from decimal import Decimal
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from odfpy.errors import MalformedData


def commitment_json(tree: Any) -> bytes:
    """Return a tree of dictionaries, lists, texts, numbers, booleans and None as canonical JSON in ASCII.

    Raises:
        MalformedData: a value is not valid in JSON, such as NaN.
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
    """Return the shortest notation of a float, with one digit before the point."""
    if not isfinite(value):
        raise MalformedData(f"No canonical JSON: {value} is not a number of JSON")
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    exponent = int(exponent) + len(text) - 1 if text else 0
    text = text.rstrip("0") or "0"
    point = "." if len(text) > 1 else ""
    return f"{'-' if sign else ''}{text[0]}{point}{text[1:]}E{exponent}"
