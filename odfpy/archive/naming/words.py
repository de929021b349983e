"""Translation of metadata fields that are patterns."""

from __future__ import annotations

from typing import Any

from odfpy.errors import OdfError


def translated(path: str, **words: str | None) -> tuple[dict[str, Any], list[str]]:
    """The words, each that has a `~` translated from the path, and why some could not be.

    Args:
        path: absolute.
        words: by the names of their fields.

    Returns:
        The words by name, None for one that could not be translated; and reasons for these.
    """
    found: dict[str, Any] = {}
    reasons = []
    for name, word in words.items():
        found[name] = word
        if word is not None and "~" in word:
            from odfpy.archive.naming.translator import Translator

            try:
                found[name] = Translator(word).translate(path)
            except OdfError as error:
                found[name] = None
                reasons.append(f"{name}: {error.message}")
    return found, reasons
