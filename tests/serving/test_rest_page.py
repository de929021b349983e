"""The examples of `docs/rest.md` are asked as they stand there, and what comes is what the page says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import Answer, ask, serving

from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rest.md"
NAME = "com.example.rates"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[DatasetServer]:
    workspace = workspace_with(tmp_path / "workspace", root(NAME, "{kind: Append}"))
    feed(workspace, NAME, "1 a", "2 b", "3 c")
    set_visibility(workspace.storage.get(NAME).folder, Visibility.PUBLIC)
    with serving(workspace) as server:
        server.app.state.token = Tokens(workspace.odf).new("me", Scope.WRITE)
        yield server


def examples() -> Iterator[tuple[str, str]]:
    """Commands of the page, and what they print."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, printed = command.partition("\n")
            yield line, printed.strip()


def curl(server: DatasetServer, line: str, folder: Path) -> Answer:
    """What curl does for the options that the page has."""
    program, *arguments = shlex.split(line)
    assert program == "curl"
    headers, body, url, target = {}, None, "", None
    while arguments:
        match arguments.pop(0):
            case "-s":
                pass
            case "-H":
                name, _, value = arguments.pop(0).partition(": ")
                headers[name] = value.replace("TOKEN", server.app.state.token)
            case "-d":
                text = arguments.pop(0)
                body = (folder / text[1:]).read_bytes() if text.startswith("@") else text.encode()
            case "-o":
                target = folder / arguments.pop(0)
            case found:
                url = found.replace("http://localhost:8080", server.url)
    answer = ask(url, method="GET" if body is None else "POST", body=body, **headers)
    if target is not None:
        target.write_bytes(answer.body)
    return answer


def same(found: Any, wanted: Any) -> bool:
    """Whether JSON is what the page says; dots at the end of a text stand for more."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, str) and wanted.endswith("..."):
        return bool(found.startswith(wanted[:-3]))
    return bool(found == wanted)


def test_the_examples_of_the_page(server: DatasetServer, tmp_path: Path) -> None:
    tried = 0
    for line, printed in examples():
        answer = curl(server, line, tmp_path)
        assert answer.status == 200, (line, answer.body)
        assert not printed or same(answer.json, json.loads(printed)), (line, answer.body)
        tried += 1
    assert tried == 7
