"""The reference of the command line, from the commands themselves: what `odf COMMAND --help` prints, as pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from odfpy.cli.commands import COMMANDS, app
from odfpy.cli.grammar import GLOBAL_OPTIONS
from odfpy.cli.session import Session

FOLDER = "commands"
OVERVIEW = f"{FOLDER}/README.md"
_EVERYWHERE = (*GLOBAL_OPTIONS, "help")


def command_pages() -> dict[str, str]:
    """A page for each command, with its subcommands, and an overview."""
    root = typer.main.get_command(app)
    context = root.make_context("odf", [], resilient_parsing=True, obj=Session())
    texts = {OVERVIEW: _overview(root, context)}
    for name in COMMANDS:
        command = root.get_command(context, name)
        texts[f"{FOLDER}/{name}.md"] = "\n".join(_sections(command, name, context, 1))
    return texts


def _overview(root: Any, context: Any) -> str:
    lines = ["# Commands", "", _prose(root.help), "", "| command | |", "|---|---|"]
    lines += [f"| [`odf {name}`]({name}.md) | {_cell(what)} |" for name, (_, what) in COMMANDS.items()]
    shared = [param for param in root.get_params(context) if param.name in _EVERYWHERE]
    lines += ["", "## Options of all commands", "", "They stand before the command or after it.", ""]
    lines += [*_table("option", _options(shared, context)), "", "## Examples", "", *_console(root.epilog), ""]
    return "\n".join(lines)


def _sections(command: Any, name: str, parent: Any, level: int) -> Iterator[str]:
    """Heading, sentence, usage, arguments, options and examples of a command, then its subcommands."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    yield from (f"{'#' * level} {context.command_path}", "", _prose(command.help), "", "```console", usage, "```", "")
    params = command.get_params(context)
    arguments = [param for param in params if param.param_type_name == "argument"]
    options = [param for param in params if param.param_type_name == "option" and param.name not in _EVERYWHERE]
    if arguments:
        yield from _table("argument", [(param.metavar, param.help) for param in arguments])
    if options:
        yield from _table("option", _options(options, context))
    if command.epilog:
        yield from _console(command.epilog)
    for sub in getattr(command, "commands", {}).values():
        if not sub.hidden:
            yield from _sections(sub, sub.name, context, level + 1)


def _options(params: list[Any], context: Any) -> list[tuple[str, str]]:
    records = (param.get_help_record(context) for param in params)
    return [record for record in records if record is not None]


def _table(title: str, rows: list[tuple[str, str | None]]) -> list[str]:
    return [f"| {title} | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(text or '')} |" for name, text in rows), ""]


def _console(examples: str) -> list[str]:
    return ["```console", *(f"$ {line}" for line in examples.splitlines()), "```", ""]


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("\n", " ")


def _prose(text: str) -> str:
    """Help is plain text: only its backticks are Markdown."""
    parts = text.split("`")
    return "`".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_").replace("[", "\\[")
