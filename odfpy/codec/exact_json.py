"""Unambiguous JSON, for documents that are hashed or signed.

If one reader takes the last of two members with the same name and another one the first, they see different documents
under one signature. The same happens if one rounds a number and another one does not. Such texts are rejected.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any, Final

_MAX_NUMBER_LENGTH: Final = 400  # characters; the shortest text of any double has at most 24


class AmbiguousJson(ValueError):
    """A text is JSON, but readers may interpret it differently."""


def load_exact(data: bytes | str) -> Any:
    """Parse a text into a tree of dictionaries, lists, texts, numbers, booleans and None.

    Raises:
        AmbiguousJson: a member occurs twice, or a number is neither an integer nor exactly a double.
        ValueError, RecursionError: the text is not JSON, or is nested too deeply.
    """
    return json.loads(
        data, object_pairs_hook=members, parse_constant=_no_number, parse_float=_fraction, parse_int=_integer
    )


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object as a dictionary.

    Raises:
        AmbiguousJson: a member occurs twice.
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
    except InvalidOperation:  # an exponent beyond the range of decimals: 0E99999999999999999999
        return False


def _integer(text: str) -> int:
    value = int(text)
    if str(value) != text:
        raise AmbiguousJson(f"the number {text[:60]} has another form as a whole number")
    return value
