"""Limits on the size of results for a model: its context is small, and costs money."""

from __future__ import annotations

from typing import Final

MAX_ROWS: Final = 1000
"""Maximum number of rows in an answer."""

MAX_CHARACTERS: Final = 100_000
"""Maximum number of characters of the rows in an answer, as JSON."""

MAX_CELL_LENGTH: Final = 2000
"""Maximum number of characters of a cell; longer ones are truncated."""

MAX_TEXT_LENGTH: Final = 4000
"""Maximum number of characters of a description, a README or a query."""

MAX_SQL_LENGTH: Final = 20_000
"""Maximum number of characters of a query."""

MAX_NAME_LENGTH: Final = 400
"""Maximum number of characters of a name, with account and block."""

MAX_PROOF_LENGTH: Final = 4 * 1024**2
"""Maximum number of characters of a proof to check; larger answers are checked without their rows."""


def truncate(text: str, most: int = MAX_TEXT_LENGTH) -> str:
    """Truncate a text to a maximum length, with a note on the number of omitted characters.

    Args:
        text: the text.
        most: maximum number of characters.
    """
    return text if len(text) <= most else f"{text[:most]}... [{len(text) - most} more characters]"
