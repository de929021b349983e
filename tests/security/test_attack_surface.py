"""What listens, starts programs or parses others' bytes is on the page about security, with its limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.attack.targets import TARGETS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
MODULES = sorted((REPOSITORY / "odfpy").rglob("*.py"))

LISTENS = {"bind", "listen", "create_server", "start_server", "start_unix_server", "serve_forever"}
STARTS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output"},
    "os": {"fork", "forkpty", "posix_spawn", "posix_spawnp", "system", "popen", "execv", "execve", "execvp", "execvpe"},
    "multiprocessing": {"Process", "Pool", "get_context"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
    "pty": {"fork", "spawn"},
}
SERVERS = ("FlightServerBase", "uvicorn.Server", "HTTPServer", "TCPServer")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by what is in the first column."""
    part = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    found = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {name: cells[1:] for cells in found for name in re.findall(r"`([^`]+)`", cells[0])}


def calls(text: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """What a module calls of something by one of these names: the something, and the name."""
    if not any(f".{name}" in text for name in names):
        return  # most modules: there is no need to parse them
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield ast.unparse(node.func.value), node.func.attr


def listens(module: Path) -> bool:
    """Whether a module opens something that others can connect to."""
    text = module.read_text(encoding="utf-8")
    has_sockets = re.search(r"^\s*(import|from) (socket|asyncio|socketserver|http\.server)\b", text, re.MULTILINE)
    if any(name in text for name in SERVERS):
        nodes = ast.walk(ast.parse(text))
        bases = [ast.unparse(base) for node in nodes if isinstance(node, ast.ClassDef) for base in node.bases]
        if any(base.endswith(SERVERS) for base in bases):
            return True
    return bool(has_sockets and any(calls(text, LISTENS)))


def starts(module: Path) -> bool:
    """Whether a module starts processes."""
    names = {name for some in STARTS.values() for name in some}
    return any(name in STARTS.get(of, ()) for of, name in calls(module.read_text(encoding="utf-8"), names))


@pytest.mark.parametrize(
    ("heading", "is_one"), [("Network listeners", listens), ("Child processes", starts)], ids=["listens", "starts"]
)
def test_what_reaches_out_of_its_process_is_listed_with_its_limits(heading, is_one) -> None:
    found = {str(module.relative_to(REPOSITORY)) for module in MODULES if is_one(module)}
    listed = rows(heading)
    assert found == listed.keys()
    assert all(cells[-1] for cells in listed.values())


def test_whatever_parses_and_is_attacked_is_listed_with_its_limits() -> None:
    listed = rows("Parsers of untrusted data")
    assert listed.keys() == TARGETS.keys()
    assert all(cells[-1] for cells in listed.values())


def test_each_promise_names_a_test_that_is_there() -> None:
    promises = PAGE.split("## Guarantees\n", 1)[1]
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", promises)
    assert len(named) > 5
    for path, function in named:
        text = (REPOSITORY / path).read_text(encoding="utf-8")
        assert not function or f"def {function}(" in text, f"{path}::{function}"
    lines = [line for line in promises.splitlines() if line.startswith("|")][2:]
    assert all("`tests/" in line.split("|")[3] for line in lines)
