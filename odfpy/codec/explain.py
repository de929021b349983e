"""`odf help E402`: explanations of the codes of errors, from `docs/errors.md`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from odfpy.errors import UsageError, did_you_mean

TEXTS = Path(__file__).with_name("errors.md")

WIDTH = 100
"""Maximum length of a line."""

_CODE = re.compile(r"[Ee]\d+")
_ENTRY = re.compile(r"^## (?P<code>E\d{3}): (?P<title>.+)\n(?P<text>(?:(?!## ).*\n?)*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of an error and its remedies; the text is Markdown."""

    code: str
    title: str
    text: str


def is_code(word: str) -> bool:
    """Return whether a word looks like the code of an error."""
    return _CODE.fullmatch(word) is not None


def explanations() -> dict[str, Explanation]:
    """Return all explanations by code."""
    found = (match.groupdict() for match in _ENTRY.finditer(TEXTS.read_text(encoding="utf-8")))
    return {part["code"]: Explanation(part["code"], part["title"], part["text"].strip()) for part in found}


def explanation(code: str) -> Explanation:
    """Return the explanation of a code.

    Raises:
        UsageError: the code does not exist.
    """
    known = explanations()
    if code.upper() not in known:
        hint = did_you_mean(code, known, otherwise="docs/errors.md lists all of them.")
        raise UsageError(f"No error has the code {code.upper()}", hint=hint)
    return known[code.upper()]


def as_text(item: Explanation) -> str:
    """Return an explanation as wrapped plain text, without Markdown for code and emphasis."""
    import textwrap

    plain = re.sub(r"\*\*|(?<!`)`(?!`)", "", item.text)
    paragraphs = (textwrap.fill(part, WIDTH, break_on_hyphens=False) for part in plain.split("\n\n"))
    return "\n\n".join((f"{item.code}: {item.title}", *paragraphs))
