"""The text of a geometry: compact GeoJSON, identical for equal geometries from any source.

Members are sorted by name, there is no white space, integers of 64 bits are unchanged, and other numbers are binary
floats in the shortest notation (`1.50` is `1.5`, `1e2` is `100.0`), as in the reference implementation. A geometry that
would thereby equal another, because of a number out of range or a duplicate key, has no text.
"""

from __future__ import annotations

import json
import math
from typing import Any

from odfpy.ingest.read.json_records import Number, Repeated

_MIN_SIZE, _MAX_SIZE = -(2**63), 2**64 - 1
_FIXED = -5  # the only exponent that Python writes as one and the reference does not


class NoText(Exception):
    """A geometry has no text; the message has the reason."""


def geometry_text(value: Any) -> str:
    """Return the text of a parsed geometry.

    Args:
        value: the parsed JSON: objects, arrays, texts, `Number`, floats, booleans, None.

    Raises:
        NoText: see above.
    """
    try:
        return _text(value)
    except RecursionError as error:
        raise NoText("it is nested too deeply") from error


def _text(value: Any) -> str:
    match value:
        case Number():
            return number_text(value)
        case float():
            return float_text(value)
        case dict():
            return "{" + ",".join(f"{_text(key)}:{_text(value[key])}" for key in sorted(value)) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_text, value)) + "]"
        case Repeated():
            raise NoText("a key occurs twice")
        case _:
            return json.dumps(value, ensure_ascii=False)


def number_text(number: Number) -> str:
    """Return a number in the notation of geometry texts.

    Raises:
        NoText: the number is out of the range of floats.
    """
    is_short = len(number) <= len(str(_MAX_SIZE))
    if is_short and number != "-0" and number.lstrip("-").isdigit() and _MIN_SIZE <= int(number) <= _MAX_SIZE:
        return number
    return float_text(float(number))


def float_text(value: float) -> str:
    """Return a float with the fewest digits that identify it.

    Raises:
        NoText: the number is not finite.
    """
    if not math.isfinite(value):
        raise NoText("a number is not finite")
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, exponent = text.split("e")
    if int(exponent) == _FIXED:
        sign, digits = mantissa[: mantissa.startswith("-")], mantissa.lstrip("-").replace(".", "")
        return f"{sign}0.0000{digits}"
    return f"{mantissa}e{int(exponent):+d}"
