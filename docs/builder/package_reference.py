"""The reference of the code: what people import, then every package for those who work on it.

MkDocs fills the pages from docstrings, without an import of the code. The folders say which packages and modules
there are.
"""

from __future__ import annotations

import ast
import os
import re
from functools import cache
from pathlib import Path

from repository_pages import REPOSITORY

FOLDER = "packages"
OVERVIEW = f"{FOLDER}/README.md"
PYTHON = "api.md"

_PUBLIC_OPTIONS = "    options: {heading_level: 3, separate_signature: true, inherited_members: true}\n"

_LESS_PROMINENT = "---\nsearch: {boost: 0.3}\n---\n"
"""Who searches finds what is written for users first."""


def public_page() -> dict[str, str]:
    """The Python interface on one page."""
    suites = f"[`odfpy.testing`]({_page('odfpy.testing')}) has contract suites for stores of your own."
    parts = ["# Python interface\n", f"[Python and notebooks](docs/python.md) shows it at work. {suites}\n"]
    sections = {
        "Connections": ["odfpy.connect", *_client_classes()],
        "Workspaces": ["odfpy.Workspace"],
        "Errors": ["odfpy.OdfError"],
    }
    for title, names in sections.items():
        parts += [f"## {title}\n", *(f"::: {name}\n{_PUBLIC_OPTIONS}" for name in names)]
    return {PYTHON: "\n".join(parts)}


@cache
def _client_classes() -> list[str]:
    """What `connect` returns, what the methods of that return, and so on."""
    found: dict[str, str] = {}
    classes: dict[str, ast.ClassDef] = {}
    waiting: list[str] = []
    for path in sorted((REPOSITORY / "odfpy" / "client").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                classes[node.name], found[node.name] = node, f"odfpy.client.{path.stem}.{node.name}"
            elif isinstance(node, ast.FunctionDef) and node.name == "connect":
                waiting = _returned(node)
    public: list[str] = []
    while waiting:
        name = waiting.pop(0)
        if name in classes and name not in public:
            public.append(name)
            methods = [node for node in classes[name].body if isinstance(node, ast.FunctionDef)]
            waiting += [other for method in methods if not method.name.startswith("_") for other in _returned(method)]
    return [found[name] for name in public]


def _returned(function: ast.FunctionDef) -> list[str]:
    """Names in the annotation of what a function returns."""
    return [] if function.returns is None else re.findall(r"\w+", ast.unparse(function.returns))


def package_pages() -> dict[str, str]:
    """A page for each package, with its modules; for those that `ODF_SITE_PACKAGES` names, if it is set.

    The packages take most of the time of a build, so that tests of the rest of the site have a few of them.
    """
    folders = sorted(path.parent for path in (REPOSITORY / "odfpy").rglob("__init__.py"))
    if wanted := os.environ.get("ODF_SITE_PACKAGES"):
        folders = [folder for folder in folders if _dotted(folder) in wanted.split()]
    texts = {_page(_dotted(folder)): _package(folder) for folder in folders}
    rows = [
        f"| [`{_dotted(folder)}`]({Path(_page(_dotted(folder))).name}) | {_sentence(folder)} |" for folder in folders
    ]
    intro = "Everything in the packages may change; [CONTRIBUTING](../CONTRIBUTING.md) has the map."
    return {OVERVIEW: "\n".join(["# Packages", "", intro, "", "| package | |", "|---|---|", *rows, ""]), **texts}


def _sentence(folder: Path) -> str:
    """What a package says of itself, in its first paragraph."""
    text = ast.get_docstring(_tree(folder)) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("|", "\\|")


def _package(folder: Path) -> str:
    name = _dotted(folder)
    own = f"members: {_defined(folder) or 'false'}, show_root_heading: false, show_root_toc_entry: false"
    parts = [_LESS_PROMINENT, f"# {name}\n", f"::: {name}\n    options: {{{own}}}\n"]
    modules = sorted(path for path in folder.glob("*.py") if not path.stem.startswith("__"))
    parts += [_module(f"{name}.{module.stem}") for module in modules]
    return "\n".join(parts)


def _defined(folder: Path) -> list[str]:
    """Public classes and functions of a package itself, without what it passes on from its modules."""
    found = [node.name for node in _tree(folder).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    return [name for name in found if not name.startswith("_")]


def _tree(folder: Path) -> ast.Module:
    return ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))


def _module(name: str) -> str:
    """Its members but those that have their place on the page of the Python interface."""
    public = (one.rpartition(".") for one in _client_classes())
    hidden = [f"!^{member}$" for module, _, member in public if module == name]
    return f"::: {name}\n    options: {{show_root_full_path: true, filters: {['!^_', *hidden]}}}\n"


def _dotted(folder: Path) -> str:
    return ".".join(folder.relative_to(REPOSITORY).parts)


def _page(name: str) -> str:
    return f"{FOLDER}/{name}.md"
