"""Translation of metadata fields that are patterns."""

from __future__ import annotations

from typing import Any

from odfpy.errors import OdfError


def translated(path: str, **words: str | None) -> tuple[dict[str, Any], list[str]]:
    """Translate each value with a `~` from the path; return the values and the errors.

    Args:
        path: absolute path.
        words: values by field name.

    Returns:
        The values by name, None for failed ones; and the errors.
    """
    by_name: dict[str, Any] = {}
    reasons = []
    for name, word in words.items():
        by_name[name] = word
        if word is not None and "~" in word:
            from odfpy.archive.naming.translator import Translator

            try:
                by_name[name] = Translator(word).translate(path)
            except OdfError as error:
                by_name[name] = None
                reasons.append(f"{name}: {error.message}")
    return by_name, reasons
