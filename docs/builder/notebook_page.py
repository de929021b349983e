"""The notebook as a page: its cells, and what came of them when it was last run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def as_markdown(notebook: str) -> str:
    """Cells of Markdown as they are, code in fences, answers below it as HTML or text."""
    return "\n\n".join(part for cell in json.loads(notebook)["cells"] for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> Iterator[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield text
        return
    yield _fenced(text, "sql" if text.startswith("%%odf") else "python")
    for output in cell["outputs"]:
        shown = output.get("data", {})
        if "text/html" in shown:
            yield f'<div class="answer">{"".join(shown["text/html"])}</div>'
        elif output["output_type"] == "error":
            yield _fenced(_COLOURS.sub("", "\n".join(output["traceback"])), "text")
        else:
            yield _fenced("".join(shown.get("text/plain") or output["text"]), "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
