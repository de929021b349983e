"""JSON that means one thing to everybody who reads it, for documents that are hashed or signed.

A reader that takes the last of two members of one name, and another that takes the first, see different documents under
one signature. So does one that rounds a number and one that shows its digits. Such texts are refused.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, Final

_MAX_NUMBER_LENGTH: Final = 400  # characters; the shortest text of any double has at most 24


class AmbiguousJson(ValueError):
    """A text is JSON, but readers may differ in what it says."""


def load_exact(data: bytes | str) -> Any:
    """Return the tree of a text: dictionaries, lists, texts, numbers, booleans and None.

    Raises:
        AmbiguousJson: a member occurs twice, or a number is not what a double or a whole number can hold.
        ValueError, RecursionError: it is not JSON, or nested too deeply.
    """
    return json.loads(
        data, object_pairs_hook=members, parse_constant=_no_number, parse_float=_fraction, parse_int=_integer
    )


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object.

    Raises:
        AmbiguousJson: one occurs twice.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise AmbiguousJson(f"it has {twice[:100]!r} twice in one place")
    return found


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number of JSON")


def _fraction(text: str) -> float:
    if len(text) > _MAX_NUMBER_LENGTH or not _is_exact(text):
        raise AmbiguousJson(f"the number {text[:60]} has more digits than a double can hold")
    return float(text)


def _is_exact(text: str) -> bool:
    value = float(text)
    try:
        return isfinite(value) and Decimal(text) == Decimal(repr(value))
    except InvalidOperation:  # an exponent that no decimal has: 0E99999999999999999999
        return False


def _integer(text: str) -> int:
    value = int(text)
    if str(value) != text:
        raise AmbiguousJson(f"the number {text[:60]} has another form as a whole number")
    return value
