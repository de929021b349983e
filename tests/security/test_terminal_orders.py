"""What others have written gives no orders to the terminal of whoever looks at it."""

from __future__ import annotations

import ast
import io
import json
import logging
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from support.chains.workspaces import workspace_with
from support.processes.terminal import terminal

from odfpy.cli.app import run
from odfpy.cli.screen.output import Format, Output, Verbosity
from odfpy.cli.screen.progress import ProgressLine
from odfpy.cli.screen.terminal import paint, put
from odfpy.codec.yaml import load_documents
from odfpy.coordinator.storage.results import Progress
from odfpy.data.rows.text_table import lines_of
from odfpy.errors import OdfError
from odfpy.escaping import escape_controls, escape_controls_in_json, escape_controls_in_lines
from odfpy.serving.http.logs import JsonFormatter

CLI = Path(__file__).resolve().parents[2] / "odfpy" / "cli"
ESCAPE, BELL, EIGHT_BIT, TURN, MARK = "\x1b]0;owned\x07", "\x07", "\x9b31m", "\u202e", "\u2066"
ORDERS = f"{ESCAPE}{BELL}{EIGHT_BIT}{TURN}{MARK}\x7f\r\b\u2028"
BAD = set(ORDERS) - set("]0;owned31m")

HOSTILE = r"""
kind: DatasetSnapshot
version: 1
content:
  name: com.example.hostile
  kind: Root
  metadata:
  - kind: AddPushSource
    sourceName: "s\e[31m\nblock 9 signed by owner"
    read: {kind: Csv, schema: {fields: [{name: "c\e]0;owned\a\u202e", type: {kind: String}}]}}
    merge: {kind: Append}
  - kind: SetInfo
    description: "d\e]0;owned\a\u202e\x9b2J\r"
    keywords: ["k\e[2J"]
  - kind: SetLicense
    shortName: "l\e[2J"
    name: "n\e[2J\nblock 8"
    websiteUrl: https://example.com
  - kind: SetAttachments
    attachments: {kind: Embedded, items: [{path: "README\e[2J", content: "t\e[2J"}]}
"""


UNSEEN = {*map(chr, (*range(0x20), *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, 0x2028, 0x2029))}
UNSEEN |= {*map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A)))}


def test_of_all_characters_those_that_give_orders_are_spelled_out():
    characters = list(map(chr, range(0x110000)))
    assert {one for one in characters if escape_controls(one) != one} == UNSEEN
    assert {one for one in characters if escape_controls_in_lines(one) != one} == UNSEEN - {"\n", "\t"}
    in_json = {one for one in characters if escape_controls_in_json(one) != one}
    assert in_json == {one for one in UNSEEN if one >= "\x7f"}


class Tty(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def seen(work: Callable[[], object]) -> str:
    """What is on the terminal after some work."""
    out, err = Tty(), Tty()
    with redirect_stdout(out), redirect_stderr(err):
        work()
    return out.getvalue() + err.getvalue()


def test_each_kind_of_order_is_spelled_out() -> None:
    assert (
        escape_controls("a\x1b[2Jb\n\t\u202e\u200f\x9b\x7f\u2028é")
        == "a\\x1b[2Jb\\n\\t\\u202e\\u200f\\x9b\\x7f\\u2028é"
    )
    assert escape_controls_in_lines("a\n\tb\r\x1b") == "a\n\tb\\r\\x1b"
    every = "".join(map(chr, range(0x110000)))
    unseen = {char for char in every if escape_controls(char) != char}
    assert {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} < unseen
    assert {"\u061c", "\u200e", "\u200f", "\u202a", "\u202e", "\u2066", "\u2069"} < unseen
    assert len(unseen) == 65 + 12 + 2


def test_json_means_what_it_meant() -> None:
    text = json.dumps({ORDERS: ORDERS}, ensure_ascii=False)
    assert not BAD & set(escape_controls_in_json(text))
    assert json.loads(escape_controls_in_json(text)) == {ORDERS: ORDERS}


WAYS: dict[str, Callable[[Output], object]] = {
    "text": lambda output: output.text(ORDERS),
    "info": lambda output: output.info(ORDERS),
    "detail": lambda output: output.detail(ORDERS),
    "error": lambda output: output.error(ORDERS, ORDERS, "E1"),
    "records": lambda output: output.records([{"a": ORDERS}], {ORDERS: "a"}),
    "rows": lambda output: output.rows([ORDERS], [[ORDERS], [{"a": ORDERS}]]),
    "flow": lambda output: output.flow([ORDERS], [[ORDERS]]),
    "tree": lambda output: output.tree({"a": ORDERS}),
    "progress": lambda _: ProgressLine(shown=True)(Progress(ORDERS.replace("\r", ""), ORDERS.replace("\r", ""), 1, 2)),
}


@pytest.mark.parametrize("form", Format)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_whatever_is_printed_to_a_terminal_is_seen(way: Callable[[Output], object], form: Format) -> None:
    text = seen(lambda: way(Output(Verbosity.VERBOSE, form)))
    for colour in ("31", "36", "2", "1", "0"):
        text = text.replace(f"\x1b[{colour}m", "")
    assert text
    assert not BAD - {"\r"} & set(text)
    assert text.count("\r") == (1 if way is WAYS["progress"] else 0)


def test_colours_are_ours_and_nobody_elses() -> None:
    out = Tty()
    put(out, f"{paint('good', 'green', out)} \x1b[32mforged\x1b[0m \ue00032m\n")
    assert out.getvalue() == "\x1b[32mgood\x1b[0m \\x1b[32mforged\\x1b[0m \ue00032m\n"


@pytest.mark.parametrize("form", [Format.CSV, Format.YAML, Format.JSON, Format.NDJSON])
def test_files_and_pipes_get_what_is_there(form: Format, capsys: pytest.CaptureFixture[str]) -> None:
    value = ORDERS.replace("\x7f", "").replace("\u2028", "")
    Output(form=form).tree([{"a": value}])
    text = capsys.readouterr().out
    match form:
        case Format.CSV:
            assert value in text
        case Format.YAML:
            assert load_documents(text)[0].tree == [{"a": value}]
        case _:
            found = json.loads(text)
            assert (found[0] if isinstance(found, list) else found) == {"a": value}


def test_everything_in_the_command_line_goes_one_way() -> None:
    """Writing to a stream is for `put`, and for texts that are ours: a new place must be one of these."""
    ours = {
        "output.py": 1,  # a drawing
        "commands.py": 1,  # the version
        "completion.py": 1,  # the scripts
        "grammar.py": 1,  # the help
        "interruptions.py": 1,
        "answers.py": 1,  # what has come through `put` already
        "progress.py": 1,
    }
    found = {}
    for file in sorted(CLI.rglob("*.py")):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        names = [ast.unparse(call.func) for call in calls]
        count = sum(
            name in ("print", "sys.stdout.write", "sys.stderr.write", "typer.echo", "click.echo") for name in names
        )
        found |= {file.name: count} if count else {}
    assert found == ours


def test_errors_in_notebooks_and_lines_of_servers_are_seen() -> None:
    assert not BAD & set("".join(OdfError(ORDERS, hint=ORDERS)._render_traceback_()))
    record = logging.LogRecord("odf", logging.INFO, "", 0, ORDERS, None, None)
    assert not BAD & set(JsonFormatter().format(record))
    assert not BAD & set("".join(lines_of([ORDERS], [[ORDERS]])))


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a dataset of somebody who writes orders wherever he can."""
    folder = tmp_path_factory.mktemp("hostile") / "workspace"
    workspace_with(folder, HOSTILE)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("log", "com.example.hostile"),
        ("log", "com.example.hostile", "-o", "csv"),
        ("log", "com.example.hostile", "-o", "json"),
        ("list",),
        ("list", "-o", "json"),
        ("inspect", "schema", "com.example.hostile"),
        ("inspect", "lineage", "com.example.hostile"),
        ("verify", "com.example.hostile", "--integrity"),
        ("sql", "-c", "select '\x1b[2J\u202e' as \"\x1b]0;owned\x07\"", "--engine", "datafusion"),
        ("pull", "\x1b[2J\u202e"),
        ("pull", "com.example.hostile", "-v"),
        ("frobnicate\x1b[2J",),
        ("search", "\x1b[2J"),
        ("help", "\x1b[2J"),
        ("config", "get", "\x1b[2J"),
        ("-vv", "log", "nothing\x1b[2J"),
    ],
)
def test_commands_show_orders_and_do_not_give_them(
    words: tuple[str, ...], hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hostile)
    monkeypatch.setenv("NO_COLOR", "1")
    text = seen(lambda: run(words))
    assert text.strip()
    assert not (BAD - {"\r"}) & set(text)
    assert "\nblock 9" not in text
    assert "\nblock 8" not in text


def test_a_real_terminal_gets_no_orders(hostile: Path) -> None:
    with terminal("log", "com.example.hostile", cwd=hostile, NO_COLOR="1") as screen:
        screen.wait()
        assert "\\x1b]0;owned\\x07\\u202e" in screen.screen
        assert "\x1b" not in screen.screen
