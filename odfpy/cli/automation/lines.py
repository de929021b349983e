"""Runs formatted as lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def line_of(row: Mapping[str, Any]) -> str:
    """Format a run as one line.

    Args:
        row: a row of `odf.runs`.
    """
    what = f"{row['at'][:19]}Z {row['dataset']}: {row['job']} {row['outcome']}"
    if row["outcome"] == "running":
        return what
    parts = [f"{row['rows']} row{'' if row['rows'] == 1 else 's'}"] if row["rows"] else []
    parts += [] if row["seconds"] is None else [f"{row['seconds']:.1f} s"]
    parts += [f"try {row['attempt']}"] if row["attempt"] > 1 else []
    why = f": {' '.join(row['error_message'].split())}" if row["error_message"] else ""
    code = f" ({row['error_code']})" if row["error_code"] else ""
    return f"{what} ({', '.join([*parts, row['reason']])}){why}{code}"


def has_failed(row: Mapping[str, Any]) -> bool:
    """Return whether a run, given as its row of `odf.runs`, failed."""
    return row["outcome"] in ("failed", "interrupted")
