"""The pages that are files of the repository: which, where they go, in what order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from posixpath import normpath

from notebook_page import as_markdown

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = (
    *("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "snapshots/README.md", "benchmarks/README.md"),
    *("examples/dagster/README.md", "examples/airflow/README.md"),
)
START = "README.md"
CONTENTS = "docs/README.md"
DECISIONS = "docs/adr/README.md"
NOTEBOOK = "docs/notebook"

_LINK = re.compile(r"\]\((?!https?://|#)([^)\s#]+)")
_HEADING = re.compile(r"^##+ +(.+)$")

Nav = list[object]


def pages() -> dict[str, str]:
    """All pages of the repository by path, the notebook among them."""
    folder = REPOSITORY / "docs"
    paths = [START, *PROJECT, *(f"docs/{path.name}" for path in sorted(folder.glob("*.md")))]
    paths += [f"docs/adr/{path.name}" for path in sorted((folder / "adr").glob("*.md"))]
    texts = {path: (REPOSITORY / path).read_text(encoding="utf-8") for path in paths}
    texts[f"{NOTEBOOK}.md"] = as_markdown((REPOSITORY / f"{NOTEBOOK}.ipynb").read_text(encoding="utf-8"))
    return {path: text.replace("notebook.ipynb)", "notebook.md)") for path, text in texts.items()}


def destination(path: str) -> str:
    """The file of the site that a page becomes: `docs/` is left out, and an overview is its folder's index."""
    if path == CONTENTS:
        return "contents.html"
    place = PurePosixPath(path.removeprefix("docs/")).with_suffix(".html")
    return str(place.with_name("index.html") if place.name == "README.html" else place)


def linked_files(texts: Mapping[str, str]) -> list[str]:
    """Files that pages link to or show, and that are not pages: pictures, manifests, programs."""
    found = {target for path, text in texts.items() for target in _targets(path, text)}
    return sorted(path for path in found - texts.keys() if (REPOSITORY / path).is_file() and not path.startswith(".."))


def _targets(path: str, text: str) -> Iterator[str]:
    for target in _LINK.findall(text):
        yield normpath(f"{PurePosixPath(path).parent}/{target}")


def navigation(texts: Mapping[str, str], references: Nav) -> Nav:
    """The menu. Sections of the documentation are those of its table of contents; what that leaves out comes last."""
    left = [path for path in texts if PurePosixPath(path).parent.name == "docs" and path != CONTENTS]
    documentation: Nav = [CONTENTS] if CONTENTS in texts else []
    title, section = "", documentation
    for line in texts.get(CONTENTS, "").splitlines():
        if heading := _HEADING.match(line):
            title, section = heading.group(1), []
        for target in _targets(CONTENTS, line):
            if target in left:
                left.remove(target)
                if title and not section:
                    documentation.append({title: section})
                section.append(target)
    documentation += left
    decisions = sorted(path for path in texts if path.startswith("docs/adr/") and path != DECISIONS)
    project: Nav = [*PROJECT, {"Decisions": [DECISIONS, *decisions]}]
    return [{"Start": START}, {"Documentation": documentation}, {"Reference": references}, {"Project": project}]
