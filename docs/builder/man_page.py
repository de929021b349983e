"""The manual page odf(1), from the commands themselves and the table of variables; `make pictures` writes it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from described_commands import DescribedCommand

from odfpy.cli.commands import SECTIONS

DOCS = Path(__file__).resolve().parents[1]
PAGE = DOCS / "odf.1"
_FILES = {
    ".odf/": "a workspace: datasets, keys, settings. Commands find it from any folder below.",
    ".odf/config.yaml": "settings of the workspace; see `odf config`.",
    "~/.config/odfpy/": "settings, tokens and keys of the user.",
    "~/.cache/odfpy/": "caches, which are rebuilt when needed.",
}
_CODES = {
    "0": "success.",
    "1": "failure: the operation failed.",
    "2": "wrong usage: the request is invalid.",
    "130": "interrupted.",
    "141": "broken pipe: the reader of the output has exited.",
}


def page() -> str:
    """The page in the macros of man(7)."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    program = DescribedCommand.whole_program()
    yield from ('.TH ODF 1 "" odfpy "Open Data Fabric"', ".SH NAME", "odf \\- verifiable, append\\-only data ledger")
    yield from (".SH SYNOPSIS", ".B odf", "[\\fIOPTIONS\\fR] \\fICOMMAND\\fR [\\fIARGUMENTS\\fR]")
    yield from (".SH DESCRIPTION", _text(program.command.help))
    yield "Errors have a code, which \\fBodf help E402\\fR explains."
    yield from (".SH OPTIONS", "Give these options before the command or after it.")
    yield from _options(program.shared_options)
    for title, commands in SECTIONS.items():
        yield f".SH {_text(title).upper()}"
        for name in commands:
            yield from _command(program.named(name))
    yield from _terms("EXIT STATUS", _CODES)
    yield from _terms("ENVIRONMENT", _variables())
    yield from _terms("FILES", _FILES)
    yield from (".SH EXAMPLES", *_example(program.command.epilog))


def _command(one: DescribedCommand) -> Iterator[str]:
    """Usage, sentence, arguments, options and examples of a command, or of each of its subcommands."""
    yield from (f".SS {_text(one.usage)}", _text(one.command.help))
    yield from _options([(name, what) for name, what in one.arguments if what])
    yield from _options(one.options)
    if one.command.epilog:
        yield from (".PP", *_example(one.command.epilog))
    for sub in one.subcommands:
        yield from _command(sub)


def _options(records: list[tuple[str, str]]) -> Iterator[str]:
    for record in records:
        yield from _term(*record)


def _terms(title: str, terms: dict[str, str]) -> Iterator[str]:
    yield f".SH {title}"
    for term, what in terms.items():
        yield from _term(term, what)


def _term(term: str, what: str) -> tuple[str, str, str]:
    return ".TP", f"\\fB{_escaped(term)}\\fR", _text(what)


def _example(text: str) -> tuple[str, ...]:
    return ".nf", ".RS 4", *(_escaped(line) for line in text.splitlines()), ".RE", ".fi"


def _variables() -> dict[str, str]:
    """The rows of the table "Environment" of docs/cli.md, without links."""
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    table = text[text.index("## Environment") :]
    rows = re.findall(r"^\| (`.+`) \| (.+) \|$", table, re.MULTILINE)
    return {name.replace("`", ""): re.sub(r"\[(.+?)\]\(.+?\)", r"\1", what) for name, what in rows}


def _text(text: str) -> str:
    """Prose, in which backticks mean bold."""
    parts = _escaped(" ".join(text.split())).split("`")
    return "".join(f"\\fB{part}\\fR" if number % 2 else part for number, part in enumerate(parts))


def _escaped(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
