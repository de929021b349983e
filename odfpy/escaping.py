r"""Escaping of control characters in untrusted text, so that it cannot send commands to a terminal.

Text from datasets, manifests, servers and files is untrusted. Control characters (C0, C1 and DEL, with which escape
sequences begin) become `\x1b`. Characters that change the direction of writing (Unicode's Bidi_Control) and invisible
line and paragraph separators become `\u202e`.
"""

from __future__ import annotations

import re
from typing import Final

# Texts, since `re` compiles and keeps a pattern when a text needs it: few do, and each takes a hundredth of a command.
_UNSEEN: Final = "\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069"
_IN_A_LINE: Final = f"[\\x00-\\x1f{_UNSEEN}]"
_IN_LINES: Final = f"[\\x00-\\x08\\x0b-\\x1f{_UNSEEN}]"
_IN_JSON: Final = f"[{_UNSEEN}]"
_NAMES: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_controls(text: str) -> str:
    """Return a text as one line, with all control characters escaped."""
    return text if text.isprintable() else re.sub(_IN_A_LINE, _escaped, text)


def escape_controls_in_lines(text: str) -> str:
    """Return a text with control characters escaped, except line feeds and tabs."""
    return text if _is_printable(text) else re.sub(_IN_LINES, _escaped, text)


def escape_controls_in_json(text: str) -> str:
    """Return JSON with control characters in its strings escaped by the rules of JSON; its meaning stays the same."""
    if _is_printable(text):
        return text
    return re.sub(_IN_JSON, lambda match: f"\\u{ord(match[0]):04x}", text)


def _is_printable(text: str) -> bool:
    """Return whether Python calls all lines printable. None of the characters to escape is."""
    return all(map(str.isprintable, text.split("\n")))


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return _NAMES.get(match[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
