"""The built files: they are what the sources give, small enough, and in the wheel. Nothing here needs Node."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[3]
FRONTEND = REPOSITORY / "frontend"
ASSETS = REPOSITORY / "odfpy" / "serving" / "pages" / "assets"
MAX_SCRIPTS = 300_000
"""Bytes of all scripts, compressed."""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def manifest() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ASSETS / "manifest.json").read_text(encoding="utf-8"))
    return found


def test_they_are_built_from_these_sources() -> None:
    """The build writes down which sources it saw: whoever changes one must run `npm run build`."""
    paths = [path.relative_to(FRONTEND).as_posix() for path in (FRONTEND / "src").rglob("*") if path.is_file()]
    paths += ["build.mjs", "package-lock.json", "tsconfig.json"]
    lines = "".join(f"{sha256(FRONTEND / path)}  {path}\n" for path in sorted(paths))
    assert hashlib.sha256(lines.encode()).hexdigest() == manifest()["sources"], "run: cd frontend && npm run build"


def test_nobody_has_touched_what_was_built() -> None:
    there = {path.name: sha256(path) for path in ASSETS.iterdir() if path.name != "manifest.json"}
    assert there == manifest()["built"]


def test_scripts_are_small() -> None:
    sizes = {path.name: len(gzip.compress(path.read_bytes(), mtime=0)) for path in ASSETS.glob("*.js")}
    assert sum(sizes.values()) <= MAX_SCRIPTS, sizes


def test_the_wheel_has_them() -> None:
    """Setuptools takes along what `package-data` names, below the folder of the package."""
    declared = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r'^"odfpy\.serving\.pages" = (\[.*\])$', declared, re.MULTILINE)
    assert found, "pyproject.toml has no package data of the pages"
    taken = {path for pattern in json.loads(found[1]) for path in ASSETS.parent.glob(pattern)}
    assert taken == set(ASSETS.iterdir())
    assert (ASSETS.parent / "__init__.py").exists(), "only the data of packages is taken along"
