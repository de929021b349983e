"""Text for amounts: counts with nouns, and sizes in bytes as messages and settings write them."""

from __future__ import annotations

from typing import Final

_UNITS: Final = {"k": 10, "m": 20, "g": 30, "t": 40}


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `2 rows`."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def format_size(count: int) -> str:
    """Return a size for users: `12 B`, `1.5 MiB`."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError


def parse_size(size: str) -> int:
    """Return the bytes of a size such as `512m`."""
    return int(size[:-1]) << _UNITS[size[-1].lower()]
