"""Errors that servers tell of, as the errors that they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from odfpy.errors import OdfError

_SAID: Final = re.compile(r"(?P<message>.*) \[(?P<code>E\d{3})\](?:\nhint: (?P<hint>.*))?", re.DOTALL)


def error_of(text: str, otherwise: type[OdfError]) -> OdfError:
    """The error of a text as our servers write it: `message [E707]`, and perhaps a hint on the next line.

    Args:
        text: what a server says.
        otherwise: of which class it is, if it does not say so.
    """
    found = _SAID.fullmatch(text)
    if found is None:
        return otherwise(text)
    return of_code(found["code"], otherwise)(found["message"], hint=found["hint"])


def of_code(code: str, otherwise: type[OdfError]) -> type[OdfError]:
    """The class of errors with a code, as far as it is known here."""
    return next((kind for kind in _below(OdfError) if kind.code == code), otherwise)


def _below(kind: type[OdfError]) -> Iterator[type[OdfError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)
