"""What listens, starts programs or parses others' bytes is on the page about security, with its limits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
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


def words_of(module: Path) -> set[str]:
    """All words of a module, by which most need not be parsed, which takes much longer."""
    return set(re.findall(r"\w+", module.read_text(encoding="utf-8")))


@cache
def tree_of(module: Path) -> ast.Module:
    return ast.parse(module.read_text(encoding="utf-8"))


def calls(module: Path, names: set[str]) -> Iterator[tuple[str, str]]:
    """What a module calls of something, by some names: the something, and the name."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield ast.unparse(node.func.value), node.func.attr


def listens(module: Path) -> bool:
    """Whether a module opens something that others can connect to."""
    words, text = words_of(module), module.read_text(encoding="utf-8")
    has_sockets = re.search(r"^\s*(import|from) (socket|asyncio|socketserver|http\.server)\b", text, re.MULTILINE)
    if has_sockets and words & LISTENS and any(calls(module, LISTENS)):
        return True
    if not any(word.endswith(tuple(name.rpartition(".")[2] for name in SERVERS)) for word in words):
        return False
    classes = (node for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef))
    return any(ast.unparse(base).endswith(SERVERS) for node in classes for base in node.bases)


def starts(module: Path) -> bool:
    """Whether a module starts processes."""
    words = words_of(module)
    wanted = [names for of, names in STARTS.items() if of in words and names & words]
    return bool(wanted) and any(name in STARTS.get(of, ()) for of, name in calls(module, set().union(*wanted)))


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
