"""The reference of the command line, from the commands themselves: what `odf COMMAND --help` prints, as pages."""

from __future__ import annotations

from collections.abc import Iterator

from described_commands import DescribedCommand

from odfpy.cli.commands import COMMANDS

FOLDER = "commands"
OVERVIEW = f"{FOLDER}/README.md"


def command_pages() -> dict[str, str]:
    """A page for each command, with its subcommands, and an overview."""
    program = DescribedCommand.whole_program()
    texts = {OVERVIEW: _overview(program)}
    for name in COMMANDS:
        texts[f"{FOLDER}/{name}.md"] = "\n".join(_sections(program.named(name), 1))
    return texts


def _overview(program: DescribedCommand) -> str:
    lines = ["# Commands", "", _prose(program.command.help), "", "| command | |", "|---|---|"]
    lines += [f"| [`odf {name}`]({name}.md) | {_cell(what)} |" for name, (_, what) in COMMANDS.items()]
    lines += ["", "## Options of all commands", "", "Give these options before the command or after it.", ""]
    lines += [*_table("option", program.shared_options), "", "## Examples", "", *_console(program.command.epilog), ""]
    return "\n".join(lines)


def _sections(one: DescribedCommand, level: int) -> Iterator[str]:
    """Heading, sentence, usage, arguments, options and examples of a command, then its subcommands."""
    yield from (f"{'#' * level} {one.path}", "", _prose(one.command.help), "", "```console", one.usage, "```", "")
    if one.arguments:
        yield from _table("argument", one.arguments)
    if one.options:
        yield from _table("option", one.options)
    if one.command.epilog:
        yield from _console(one.command.epilog)
    for sub in one.subcommands:
        yield from _sections(sub, level + 1)


def _table(title: str, rows: list[tuple[str, str]]) -> list[str]:
    return [f"| {title} | |", "|---|---|", *(f"| `{_cell(name)}` | {_cell(text)} |" for name, text in rows), ""]


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
