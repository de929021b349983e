"""Conversion of errors reported by servers to the corresponding exceptions."""

from __future__ import annotations

import re
from typing import Final

from odfpy.codec.errors import error_class, restore_error
from odfpy.errors import OdfError

_SAID: Final = re.compile(r"(?P<message>.*) \[(?P<code>E\d{3})\](?:\nhint: (?P<hint>.*))?", re.DOTALL)


def error_of(text: str, otherwise: type[OdfError]) -> OdfError:
    """Parse an error in the format of odfpy servers: `message [E707]`, with an optional hint on the next line.

    Args:
        text: text from the server.
        otherwise: class of the error if the text has no code.
    """
    found = _SAID.fullmatch(text)
    if found is None:
        return otherwise(text)
    return of_code(found["code"], otherwise, found["message"], hint=found["hint"])


def of_code(code: str, otherwise: type[OdfError], message: str, *, hint: str | None = None) -> OdfError:
    """Create the error with a code.

    Args:
        code: code from the server.
        otherwise: class of the error if this release does not know the code.
        message: the error message.
        hint: advice for the user.
    """
    return restore_error(error_class(code) or otherwise, message, hint=hint)
