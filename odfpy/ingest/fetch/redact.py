"""Removal of secrets from the output of other programs, before it becomes part of an error."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_VARIABLE = re.compile(r"\benv\.([A-Za-z0-9_-]+)")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[^\n\t\x20-\x7e\x80-\U0010ffff]|[\x80-\x9f]")
_SHOWN_LINES = 20
_SHOWN_CHARACTERS = 2000


def secrets_of(templates: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of the variables named in templates, longest first."""
    names = {name for text in templates for name in _VARIABLE.findall(text)}
    return tuple(sorted({environment[name] for name in names if environment.get(name)}, key=len, reverse=True))


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret replaced by three stars."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def last_words(output: bytes, secrets: Iterable[str]) -> str:
    """Return the end of a program's output for an error message: without secrets and control characters."""
    text = redact(output.decode("utf-8", "replace"), secrets)
    lines = [line.rstrip() for line in _CONTROL.sub("", text).splitlines() if line.strip()]
    return "\n".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]
