r"""Text of others made visible: what comes from a dataset, a manifest, a server or a file gives a terminal no orders.

Control characters (C0, C1 and DEL: escape sequences begin with them) are spelled out as `\x1b`; those that turn the
direction of writing (Unicode's Bidi_Control), so that a line reads other than it is, and those that end lines or
paragraphs unseen as `\u202e`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

_UNSEEN: Final = "\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069"
_IN_A_LINE: Final = f"[\\x00-\\x1f{_UNSEEN}]"
_IN_LINES: Final = f"[\\x00-\\x08\\x0b-\\x1f{_UNSEEN}]"
_IN_JSON: Final = f"[{_UNSEEN}]"
_NAMES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_controls(text: str) -> str:
    """A text that is to be one line, with all of these spelled out."""
    return text if text.isprintable() else _pattern(_IN_A_LINE).sub(_spelled, text)


def escape_controls_in_lines(text: str) -> str:
    """The same of a text that may have line feeds and tabs, which stay."""
    return text if _is_printable(text) else _pattern(_IN_LINES).sub(_spelled, text)


def escape_controls_in_json(text: str) -> str:
    """The same of JSON, which means what it meant: they can only stand in texts, where these are their escapes."""
    if _is_printable(text):
        return text
    return _pattern(_IN_JSON).sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _is_printable(text: str) -> bool:
    """Return whether all lines are printable to Python, for which none of these characters is."""
    return all(map(str.isprintable, text.split("\n")))


@cache
def _pattern(characters: str) -> re.Pattern[str]:
    """Return what finds these characters, compiled when a text needs it: that takes a hundredth of a short command."""
    return re.compile(characters)


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMES.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
