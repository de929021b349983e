"""`odf completion bash|zsh|fish`: completion with the Tab key, and the scripts that enable it in shells.

A shell runs `odf` with the variable `_ODF_COMPLETE` set to the shell's name and the words typed so far as arguments,
the last of them unfinished (bash passes the complete line, since it splits words at colons). The output is `files` if
the shell should complete file names, or `words` followed by lines of `word<Tab>description`. Nothing else is printed,
and no command is run.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from odfpy.cli.grammar import command, group
from odfpy.cli.session import Session
from odfpy.errors import OdfError, UsageError, did_you_mean
from odfpy.escaping import escape_controls

commands = group("Completion.")

VARIABLE = "_ODF_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_FILES = frozenset(("FILE", "FOLDER", "PATH"))


@command(
    commands,
    "odf completion bash > ~/.local/share/bash-completion/completions/odf",
    "odf completion zsh > ~/.zfunc/_odf",
    "odf completion fish > ~/.config/fish/completions/odf.fish",
)
def completion(
    shell: Annotated[
        str,
        typer.Argument(help="bash, zsh or fish.", metavar="SHELL", autocompletion=lambda: list(SHELLS)),
    ],
) -> None:
    """Print a script for a shell, so that the Tab key completes commands, options, datasets and repositories."""
    if shell not in SHELLS:
        hint = did_you_mean(shell, SHELLS, otherwise=f"One of: {', '.join(SHELLS)}.")
        raise UsageError(f"There are no completions for {shell!r}", hint=hint)
    sys.stdout.write(Path(__file__).with_name(f"completion.{shell}").read_text(encoding="utf-8"))


def answer(root: Any, shell: str, words: Sequence[str]) -> str:
    """Return the completions in the format of a shell.

    Args:
        root: the root command of Typer.
        shell: name of the shell.
        words: the words typed, without `odf`; for bash one text, with `odf`.
    """
    *done, unfinished = _split(words[0])[1:] if shell == "bash" else words
    if unfinished.startswith(("/", "./", "../", "~")):
        return "files\n"
    try:
        completions = _completions(root, done, unfinished)
    except (OdfError, OSError):
        completions = []
    if completions is None:
        return "files\n"
    matching = (
        f"{escape_controls(word)}\t{escape_controls(help_text)}".rstrip()
        for word, help_text in completions
        if word.startswith(unfinished)
    )
    return "\n".join(("words", *matching, ""))


def _split(line: str) -> list[str]:
    """Split a command line up to the cursor into words; the last may be empty, or within quotes."""
    for end in ("", '"', "'"):
        try:
            words = shlex.split(line + end)
        except ValueError:  # a quote is open
            continue
        return [*words, ""] if not end and (not words or line[-1:].isspace()) else words
    return line.split()


@dataclass(frozen=True)
class _Cursor:
    """The position of the next word on a command line.

    Attributes:
        command: the command or group of commands.
        positional: the number of positional arguments before it.
        option: the option whose value it is, else None.
    """

    command: Any
    positional: int = 0
    option: Any = None


def _completions(root: Any, done: Sequence[str], unfinished: str) -> list[tuple[str, str]] | None:
    """Return the possible next words, with descriptions; None where file names are expected."""
    session = Session()
    with root.make_context("odf", [], obj=session, resilient_parsing=True) as context:
        if done[:1] == ["help"]:
            return _help_topics(root, context) if len(done) == 1 else []
        cursor = _cursor_after(root, context, done)
        if cursor is None:
            return []
        command = cursor.command
        if cursor.option is not None:
            return _values(cursor.option, context, unfinished)
        if unfinished.startswith("--") and "=" in unfinished:
            name, _, value = unfinished.partition("=")
            option = _option(command, context, name)
            values = _values(option, context, value) if option is not None and _takes_value(option) else []
            return None if values is None else [(f"{name}={word}", help_text) for word, help_text in values]
        if unfinished.startswith("-"):
            return list(_options(command, context))
        if hasattr(command, "list_commands"):
            return list(_commands(command, context))
        argument = _argument(command, context, cursor.positional)
        return [] if argument is None else _values(argument, context, unfinished)


def _cursor_after(root: Any, context: Any, done: Sequence[str]) -> _Cursor | None:
    """Return the position after complete words, and record their values; None if there is no such command."""
    cursor = _Cursor(root)
    for word in done:
        if cursor.option is not None:
            _record(cursor.option, word, context)
            cursor = replace(cursor, option=None)
        elif word.startswith("-"):
            name, has_value, value = word.partition("=")
            option = _option(cursor.command, context, name)
            if option is None or not _takes_value(option):
                continue
            if has_value:
                _record(option, value, context)
            else:
                cursor = replace(cursor, option=option)
        elif hasattr(cursor.command, "list_commands"):
            command = cursor.command.get_command(context, word)
            if command is None:
                return None
            cursor = replace(cursor, command=command)
        else:
            argument = _argument(cursor.command, context, cursor.positional)
            if argument is not None:
                _record(argument, word, context)
            cursor = replace(cursor, positional=cursor.positional + 1)
    return cursor


def _argument(command: Any, context: Any, number: int) -> Any:
    """Return the positional parameter of a given number, None if there is none."""
    arguments = [param for param in _params(command, context) if param.param_type_name == "argument"]
    if number >= len(arguments) and not (arguments and arguments[-1].nargs == -1):
        return None
    return arguments[min(number, len(arguments) - 1)]


def _record(param: Any, value: str, context: Any) -> None:
    """Record the value of an option or argument: completions of other words may depend on it."""
    context.params[param.name] = value
    if param.name == "workspace":
        context.obj.folder = value


def _values(param: Any, context: Any, unfinished: str) -> list[tuple[str, str]] | None:
    """Return values of an option or argument; None if they are file names."""
    if param.metavar in _FILES:
        return None
    return [(item.value, item.help or "") for item in param.shell_complete(context, unfinished)]


def _params(command: Any, context: Any) -> list[Any]:
    """Return the parameters of a command, with those of the whole program."""
    shared = [param for param in context.command.params if param.name in ("workspace", "quiet", "verbose")]
    own = [param for param in command.params if param not in shared]
    return own + shared


def _option(command: Any, context: Any, name: str) -> Any:
    options = (param for param in _params(command, context) if param.param_type_name == "option")
    return next((option for option in options if name in option.opts), None)


def _takes_value(option: Any) -> bool:
    return not option.is_flag and not option.count


def _options(command: Any, context: Any) -> Iterator[tuple[str, str]]:
    for param in _params(command, context):
        if param.param_type_name == "option":
            yield max(param.opts, key=len), param.help or ""
    yield "--help", "Show how it is used."


def _commands(command: Any, context: Any) -> Iterable[tuple[str, str]]:
    found: list[tuple[str, str]] = command.summaries(context)
    return [*found, ("help", "Explain a command or an error.")] if command is context.command else found


def _help_topics(root: Any, context: Any) -> list[tuple[str, str]]:
    from odfpy.codec.explain import explanations

    return [*_commands(root, context), *((code, item.title) for code, item in explanations().items())]
