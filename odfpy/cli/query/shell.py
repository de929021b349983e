"""The interactive shell of `odf sql`.

A statement runs in a separate process, so that Ctrl-C can always stop it: native code sees an interruption only when
it returns. The shell itself continues.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import FrameType
from typing import Any, Final

from odfpy.cli.grammar import whole_number
from odfpy.cli.query.shell_history import History
from odfpy.cli.query.words import COMMANDS, WordCompleter
from odfpy.cli.screen.answers import DisplayOptions
from odfpy.cli.screen.output import Format, Output
from odfpy.cli.screen.progress import ProgressLine
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import EngineError, InternalError, OdfError, UsageError, did_you_mean
from odfpy.query.dialects import dialect_named
from odfpy.query.tables import split_statements

HELP = r"""Statements end with a semicolon and may have several lines; every dataset is a table under its name.
  \d            list the datasets
  \d NAME       show the columns of one
  \format FORM  print table, json, ndjson, csv or yaml
  \plot         draw answers instead, or do not (on, off); \plot FILE.png draws the next one to a file
  \timing       say how long it took, or do not (on, off)
  \pager        show long answers page by page, or do not (on, off)
  \limit N      rows at most; off for all
  \engine NAME  spark or datafusion
  \?            this
  \q            leave (or Ctrl-D)
The Tab key completes words. Ctrl-C ends a query, or drops what is typed."""

_HABITS: Final = {
    **dict.fromkeys(("exit", "quit", ".exit", ".quit", ".q", "\\quit"), "\\q"),
    **dict.fromkeys(("help", ".help", "?", "\\h", "\\help"), "\\?"),
    **dict.fromkeys((".tables", ".schema", "describe", "desc", "\\dt", "\\d+", "\\dt+", "\\dv", "\\l"), "\\d"),
    ".mode": "\\format",
    ".timer": "\\timing",
}
"""Commands of other shells, and their counterpart here."""


class _Interrupted(Exception):
    """A statement was interrupted."""


class Shell:
    """Read statements, run them, and print the results.

    Attributes:
        workspace: the workspace whose datasets are the tables.
        output: the output of the command.
        showing: display options, including the engine.
        progress: progress line for the engine.
    """

    def __init__(self, workspace: Workspace, output: Output, showing: DisplayOptions, progress: ProgressLine) -> None:
        self.workspace = workspace
        self.output = output
        self.showing = showing
        self.progress = progress
        self._is_reading = False
        self._lines: list[str] = []

    def run(self, statement: str) -> None:
        """Run one statement.

        Raises:
            OdfError: raised by the engine.
        """
        self.showing.run(self.workspace, statement, self.output, self.progress)

    def _run_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.run(statement)

    def interact(self) -> None:
        """Loop until the user leaves."""
        self.showing = replace(self.showing, interactive=True, timing=True, pager=True)
        self.output.text(f"SQL shell of {self.workspace.root}. \\? for help, \\q to leave.")
        history = History(self.workspace.storage.cache / "sql-history")
        with self._interruptible():
            self._loop(history)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Make Ctrl-C cancel only keyboard input, nothing else in this process."""
        before = signal.getsignal(signal.SIGINT)
        if before == signal.SIG_IGN:
            yield
            return
        wakeup = signal.set_wakeup_fd(-1)  # no other code may read its bytes
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(wakeup)

    def _interrupted(self, _: int, __: FrameType | None) -> None:
        if self._is_reading:
            self._is_reading = False
            raise KeyboardInterrupt

    def _read(self, prompt: str) -> str:
        self._is_reading = True
        try:
            return input(prompt)
        finally:
            self._is_reading = False

    def _loop(self, history: History) -> None:
        words = WordCompleter(self.workspace, lambda: self.showing.engine)
        words.attach(lambda: "".join(f"{line}\n" for line in self._lines))
        while True:
            try:
                pasted = self._read("...> " if self._lines else "odf> ")
                if not all(self._take(line, history) for line in pasted.split("\n")):
                    return
            except EOFError:
                self.output.text()
                return
            except OdfError as error:
                self._lines = []
                self.output.error(error.message, error.hint, error.code)
            except KeyboardInterrupt:  # discard the typed input
                self._lines = []
                self.output.text()
            except _Interrupted:  # discard the input pasted after it
                continue

    def _take(self, line: str, history: History) -> bool:
        """Process a line, or the statement that it completes; otherwise, buffer it. Return false if the user leaves."""
        command, argument = _own_command(line)
        if command and (not self._lines or (line.lstrip().startswith("\\") and not self._is_open())):
            if command == "\\q":
                return False
            history.add([line.strip()])
            self._meta(command, argument)
            return True
        is_remark = not line.strip() or line.lstrip().startswith("--")
        self._lines += [] if is_remark and not self._lines else [line]
        text = "\n".join(self._lines)
        dialect = self.showing.engine or "spark"
        if is_complete(text, dialect):
            history.add(_in_one_line(self._lines, dialect))
            self._lines = []
            self._run_apart(text)
        return True

    def _is_open(self) -> bool:
        """Return whether a quote or a comment is open in the input so far."""
        return not _tokens("\n".join(self._lines), self.showing.engine or "spark")

    def _run_apart(self, text: str) -> None:
        dialect = dialect_named(self.showing.engine or "spark")
        code = _apart(lambda: self._run_all(split_statements(text, dialect)), self.output)
        self.showing.png = None
        if code == -signal.SIGINT:
            self.output.text()
            self.output.error("interrupted")
            raise _Interrupted
        if code < 0:
            raise EngineError(
                f"The statement was terminated by signal {-code}", hint="Possibly there was not enough memory."
            )

    def _meta(self, command: str, argument: str) -> None:
        showing = self.showing
        match command:
            case "\\d":
                self._describe(argument)
            case "\\?":
                self.output.text(HELP)
            case "\\plot" if argument.lower().endswith(".png"):
                showing.png = argument
            case "\\timing" | "\\pager" | "\\plot":
                name = command[1:]
                setattr(showing, name, _flag(argument, getattr(showing, name)))
                self.output.info(f"{name} is {'on' if getattr(showing, name) else 'off'}")
            case "\\format":
                self.output.form = Format.parse(argument) if argument else self.output.form
                self.output.info(f"format is {self.output.form.value}")
            case "\\limit":
                if argument:
                    showing.limit = None if argument == "off" else whole_number(argument, "\\limit")
                self.output.info(f"limit is {'off' if showing.limit is None else showing.limit}")
            case "\\engine":
                showing.engine = dialect_named(argument).name if argument else showing.engine
                self.output.info(f"engine is {showing.engine or 'spark'}")
            case _:
                raise UsageError(
                    f"There is no command {command}", hint=did_you_mean(command, COMMANDS, otherwise="\\? lists them.")
                )

    def _describe(self, name: str) -> None:
        """Print the datasets, or the columns of one."""
        if not name:
            found = self.workspace.datasets.survey()[0]
            self.output.rows(
                ["Dataset", "Kind", "Records"], [(str(s.handle), s.kind.value, s.num_records) for s in found]
            )
            return
        from odfpy.data.schemas.type_text import type_text

        state = self.workspace.datasets.state(name)
        fields = state.schema.fields if state.schema else ()
        self.output.rows(["Column", "Type"], [(field.name, type_text(field.type)) for field in fields])
        if state.primary_key and self.output.for_people:
            self.output.text(f"Key: {', '.join(state.primary_key)}")


def _own_command(line: str) -> tuple[str, str]:
    """Parse a command of this or another shell, and its argument. Both are empty if there is none."""
    text = line.strip().rstrip(";").strip()
    word, _, argument = ("\\d" if text.lower() == "show tables" else text).partition(" ")
    command = _HABITS.get(word.lower(), word)
    return (command, argument.strip().strip("`\"'")) if command.startswith("\\") else ("", "")


def is_complete(text: str, dialect: str) -> bool:
    """Return whether the text ends with a semicolon outside of quotes and comments."""
    if ";" not in text:
        return False
    tokens = _tokens(text, dialect)
    return bool(tokens) and tokens[-1].token_type.name == "SEMICOLON"


def _tokens(text: str, dialect: str) -> Sequence[Any]:
    """Return the tokens of statements; none if a quote or a comment is open."""
    from sqlglot.errors import TokenError

    try:
        return dialect_named(dialect).tokens(text)
    except TokenError:
        return []


def _in_one_line(lines: list[str], dialect: str) -> list[str]:
    """Join statements into one line for the history, if that does not change their meaning."""
    tokens = _tokens("\n".join(lines), dialect)
    if any("--" in line for line in lines) or any("\n" in token.text for token in tokens):
        return [line for line in lines if line.strip()]
    return [" ".join(line.strip() for line in lines if line.strip())]


def _flag(argument: str, before: bool) -> bool:
    """Return the new state of a flag: without an argument, toggle it."""
    if argument and argument not in ("on", "off"):
        raise UsageError(f"Must be on or off, not {argument!r}")
    return not before if not argument else argument == "on"


def _apart(work: Callable[[], None], output: Output) -> int:
    """Run a function in a copy of this process that Ctrl-C terminates. Return its exit code, or minus the signal."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        work()
        code = 0
    except OdfError as error:
        output.error(error.message, error.hint, error.code)
    except Exception as error:  # noqa: BLE001 - the copy must not return into the caller
        output.error(f"{type(error).__name__}: {error}", code=InternalError.code)
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)
