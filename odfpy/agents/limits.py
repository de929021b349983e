"""Limits on the size of results for a model: its context is small, and costs money."""

from __future__ import annotations

from typing import Final

MAX_ROWS: Final = 1000
"""Rows of an answer."""

MAX_CHARACTERS: Final = 100_000
"""Characters of the rows of an answer, as JSON."""

MAX_CELL_LENGTH: Final = 2000
"""Characters of a cell; a longer one is shown cut."""

MAX_TEXT_LENGTH: Final = 4000
"""Characters of a description, a README or a query."""

MAX_SQL_LENGTH: Final = 20_000
"""Maximum characters of a query."""

MAX_NAME_LENGTH: Final = 400
"""Characters of a name, with its account and a block."""

MAX_PROOF_LENGTH: Final = 4 * 1024**2
"""Maximum characters of a proof to check; larger answers are checked without their rows."""


def truncate(text: str, most: int = MAX_TEXT_LENGTH) -> str:
    """Return a text, or its beginning with a note of how much is left out.

    Args:
        text: the text.
        most: maximum characters.
    """
    return text if len(text) <= most else f"{text[:most]}... [{len(text) - most} more characters]"
