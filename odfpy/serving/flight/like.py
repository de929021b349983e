"""Patterns of names as in SQL's LIKE: `%` matches any text, `_` any character; a backslash escapes them.

Backtracking takes time that doubles with each `%`. Here each piece between two `%` is searched once, after the previous
match: the leftmost match is always sufficient.
"""

from __future__ import annotations

from typing import Final

from odfpy.serving.flight.errors import FlightSqlError

MAX_LENGTH: Final = 1000
"""Characters of a pattern; names of datasets are shorter."""

_ANY: Final = None
_Piece = list[str | None]


class Like:
    """A pattern."""

    def __init__(self, pattern: str) -> None:
        """
        Raises:
            FlightSqlError: the pattern is too long.
        """
        if len(pattern) > MAX_LENGTH:
            raise FlightSqlError(
                f"A pattern of names has {MAX_LENGTH} characters at most, not {len(pattern)}",
                hint="Use % for any text.",
            )
        self._pieces = _split(pattern)

    def fits(self, name: str) -> bool:
        """Return whether a name matches; takes at most as many steps as the product of both lengths."""
        first, *others = self._pieces
        if not others:
            return len(name) == len(first) and _is_at(first, name, 0)
        *middle, last = others
        at, end = len(first), len(name) - len(last)
        if at > end or not _is_at(first, name, 0) or not _is_at(last, name, end):
            return False
        for piece in middle:
            position = next((place for place in range(at, end - len(piece) + 1) if _is_at(piece, name, place)), None)
            if position is None:
                return False
            at = position + len(piece)
        return True


def _split(pattern: str) -> list[_Piece]:
    """Return the pieces between `%`: characters, and None for `_`."""
    pieces: list[_Piece] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == "%":
            pieces.append([])
        elif character == "_":
            pieces[-1].append(_ANY)
        else:
            pieces[-1].append(next(characters, character) if character == "\\" else character)
    return pieces[:1] + [piece for piece in pieces[1:-1] if piece] + pieces[1:][-1:]


def _is_at(piece: _Piece, name: str, place: int) -> bool:
    return all(character is _ANY or character == name[place + step] for step, character in enumerate(piece))
