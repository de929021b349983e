"""Documents that a person types along do what they show, word for word."""

from __future__ import annotations

import shlex
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
import typer
from support.typed import NOT_RUN, Typed, commands_in, difference, type_in

from odfpy.cli.commands import app

REPOSITORY = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Document:
    """A document, and what it takes for granted.

    Attributes:
        path: in the repository.
        begins: the heading from which on it is typed.
        folder: what it calls the folder that its reader begins in.
        not_run: how many of its blocks are not typed.
        at_least: so many commands.
    """

    path: str
    begins: str
    folder: str
    not_run: int
    at_least: int


DOCUMENTS = [
    Document("README.md", "## Quick start", "/home/you/odfpy", not_run=1, at_least=12),  # the installation
    Document("docs/tutorial.md", "# Tutorial", "/home/you", not_run=0, at_least=40),
    Document("docs/guide.md", "# Guide", "/home/you", not_run=1, at_least=30),  # the installation
    Document("docs/federation.md", "## A web of two relays", "/home/you", not_run=1, at_least=12),
    Document("docs/archive.md", "## First steps", "/home/you", not_run=3, at_least=20),
]
"""The first two are typed in by each run of the tests: newcomers begin there, and they have most of the others' commands."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.spark
@pytest.mark.processes
@pytest.mark.slow_after(2)
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.path)
def test_a_document_shows_what_its_commands_print(document: Document, tmp_path: Path) -> None:
    text = (REPOSITORY / document.path).read_text(encoding="utf-8")
    text = text[text.index(document.begins) :]
    assert len(NOT_RUN.findall(text)) == document.not_run
    folder, home = tmp_path / "you", tmp_path / "home"
    home.mkdir()
    shutil.copytree(REPOSITORY / "snapshots", folder / "snapshots")
    replaced = {document.folder: str(folder), **{port: str(free_port()) for port in ("8000", "50051", "50052")}}
    commands = list(commands_in(text))
    assert len(commands) >= document.at_least
    typed = type_in(commands, folder, home, replaced)
    assert len(typed) == len(commands), typed[-1]
    wrong = [found for one, printed in typed if (found := difference(one, printed, replaced))]
    assert wrong == [], "\n\n".join(wrong)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.path)
def test_a_document_names_commands_and_options_that_there_are(document: Document) -> None:
    """Also of those that are not typed in by each run of the tests."""
    text = (REPOSITORY / document.path).read_text(encoding="utf-8")
    commands = [words for typed in commands_in(text) for words in odf_commands(typed.command)]
    assert len(commands) >= document.at_least // 2
    root = typer.main.get_command(app)
    with root.make_context("odf", ["version"]) as context:
        for words in commands:
            if words[:1] == ["help"]:  # which is not among the commands
                continue
            command = root
            options = {option for param in root.params for option in param.opts}
            for word in words:
                if word.startswith("-"):
                    assert word.partition("=")[0] in options, words
                elif hasattr(command, "commands") or command is root:
                    found = command.get_command(context, word)
                    if found is None and command is root and options_with_values(root, words, word):
                        continue
                    assert found is not None, words
                    command = found
                    options |= {option for param in command.params for option in (*param.opts, *param.secondary_opts)}


def options_with_values(root: click.Group, words: list[str], word: str) -> bool:
    """Whether a word is the value of the option before it."""
    before = words[words.index(word) - 1]
    return any(before in param.opts and not getattr(param, "is_flag", False) for param in root.params)


def odf_commands(command: str) -> Iterator[list[str]]:
    """The words behind `odf` of each command in a line of a shell."""
    line = command.partition("<<")[0] if "<<" in command else command
    words: list[str] | None = None
    for word in [*shlex.shlex(line, posix=True, punctuation_chars=True), ";"]:
        if set(word) <= set("();<>|&"):
            if words is not None:
                yield words
            words = None
        elif words is not None:
            words.append(word)
        elif word == "odf":
            words = []


PRINTED = "a: verified (2 blocks, 1.5 s)\nwatermark 2024-05-01T08:00:00Z, made 2026-11-23T20:00:00.123Z\n2 verified"


@pytest.mark.parametrize(
    ("shown", "agrees"),
    [
        (("a: verified (2 blocks, 0.1 s)", "watermark 2024-05-01T08:00:00Z, made 2027-01-01T00:00:00Z", "2 verified"), True),
        (("...", "2 verified"), True),
        (("a: ...", "...", "2 verified"), True),
        ((), True),
        (("...", "3 verified"), False),
        (("a: verified (2 blocks, 0.1 s)", "2 verified"), False),
        (("a: verified (3 blocks, 1.5 s)", "..."), False),
        (("...", "watermark 2024-05-02T08:00:00Z, made 2026-11-23T20:00:00Z", "2 verified"), False),
    ],
)  # fmt: skip
def test_what_is_shown_wrong_is_found(shown: tuple[str, ...], agrees: bool) -> None:
    assert (difference(Typed("odf verify a", shown), PRINTED, {}) is None) == agrees


def test_a_command_that_fails_is_found() -> None:
    failed = "error: No dataset 'a' (E112)\nexit code 1"
    assert difference(Typed("odf pull a", ()), failed, {})
    assert difference(Typed("odf pull a", ("...",)), failed, {})
    assert difference(Typed("odf pull a", ("error: No dataset 'a' (E112)",)), failed, {}) is None
