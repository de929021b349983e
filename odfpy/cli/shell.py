"""The interactive side of `odf sql`.

A statement runs in a process of its own, so that Ctrl-C ends it whatever it is at: native code hears nothing before it
has come back. The shell itself stays.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType

from odfpy.cli.answers import Showing
from odfpy.cli.grammar import whole_number
from odfpy.cli.output import Format, Output
from odfpy.cli.words import Words, remember_as_one
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import EngineError, InternalError, OdfError, UsageError
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

HISTORY_LINES = 1000


class Shell:
    """Reads statements, runs them, prints what comes back.

    Attributes:
        workspace: whose datasets are the tables.
        output: where to print.
        showing: how, and by which engine.
    """

    def __init__(self, workspace: Workspace, output: Output, showing: Showing) -> None:
        self.workspace = workspace
        self.output = output
        self.showing = showing
        self._is_reading = False
        self._lines: list[str] = []

    def run(self, statement: str) -> None:
        """Run one statement.

        Raises:
            OdfError: as the engine says.
        """
        self.showing.run(self.workspace, statement, self.output)

    def _run_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.run(statement)

    def interact(self) -> None:
        """Go on until the person leaves."""
        self.showing = replace(self.showing, interactive=True, timing=True, pager=True)
        self.output.text(f"SQL shell of {self.workspace.root}. \\? for help, \\q to leave.")
        with self._interruptible():
            with_history(self.workspace.storage.cache / "sql-history", self._loop)

    @contextmanager
    def _interruptible(self) -> Iterator[None]:
        """Let Ctrl-C end what is read from the keyboard, and nothing else of this process."""
        before = signal.getsignal(signal.SIGINT)
        if before == signal.SIG_IGN:
            yield
            return
        wakeup = signal.set_wakeup_fd(-1)  # nobody else is to wait for an answer to it
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

    def _loop(self) -> None:
        words = Words(self.workspace, lambda: self.showing.engine)
        words.attach(lambda: "".join(f"{line}\n" for line in self._lines))
        while True:
            try:
                line = self._read("...> " if self._lines else "odf> ")
                if not self._lines and line.strip() in ("\\q", "\\quit"):
                    return
                self._take(line)
            except EOFError:
                self.output.text()
                return
            except OdfError as error:
                self._lines = []
                self.output.error(error.message, error.hint, error.code)
            except KeyboardInterrupt:  # drops what is typed
                self._lines = []
                self.output.text()

    def _take(self, line: str) -> None:
        """Do what a line says, or what it completes; keep it otherwise."""
        if not self._lines and line.strip().startswith("\\"):
            self._meta(line.strip())
            return
        self._lines += [line] if self._lines or line.strip() else []
        text = "\n".join(self._lines)
        if not is_complete(text, self.showing.engine or "spark"):
            return
        remember_as_one(self._lines)
        self._lines = []
        code = _apart(lambda: self._run_all(split_statements(text)), self.output)
        self.showing.png = None
        if code == -signal.SIGINT:
            self.output.text()
            self.output.error("interrupted")
        elif code < 0:
            raise EngineError(f"The statement was ended by signal {-code}", hint="Perhaps memory did not suffice.")

    def _meta(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        argument = argument.strip().rstrip(";").strip("`\"'")
        match command.rstrip(";"):
            case "\\d":
                self._describe(argument)
            case "\\format":
                self.output.form = Format.parse(argument) if argument else Format.TABLE
            case "\\timing":
                self.showing.timing = _flag(argument, self.showing.timing)
            case "\\pager":
                self.showing.pager = _flag(argument, self.showing.pager)
            case "\\plot" if argument.lower().endswith(".png"):
                self.showing.png = argument
            case "\\plot":
                self.showing.plot = _flag(argument, self.showing.plot)
            case "\\limit":
                self.showing.limit = None if argument in ("", "off") else whole_number(argument, "\\limit")
            case "\\engine":
                self.showing.engine = dialect_named(argument).name if argument else None
            case _:
                self.output.text(HELP)

    def _describe(self, name: str) -> None:
        """The datasets, or the columns of one."""
        if not name:
            found = self.workspace.survey()[0]
            self.output.rows(
                ["Dataset", "Kind", "Records"], [(str(s.handle), s.kind.value, s.num_records) for s in found]
            )
            return
        from odfpy.data.type_text import type_text

        state = self.workspace.state(name)
        fields = state.schema.fields if state.schema else ()
        self.output.rows(["Column", "Type"], [(field.name, type_text(field.type)) for field in fields])
        if state.primary_key and self.output.for_people:
            self.output.text(f"Key: {', '.join(state.primary_key)}")


def is_complete(text: str, dialect: str) -> bool:
    """Whether statements end with a semicolon that is in no quotes, and no comment."""
    from sqlglot.errors import TokenError

    if ";" not in text:
        return False
    try:
        tokens = dialect_named(dialect).tokens(text)
    except TokenError:  # a quote is open
        return False
    return bool(tokens) and tokens[-1].token_type.name == "SEMICOLON"


def _flag(argument: str, before: bool) -> bool:
    """What a switch is after a command about it."""
    if argument and argument not in ("on", "off"):
        raise UsageError(f"It is on or off, not {argument!r}")
    return not before if not argument else argument == "on"


def _apart(work: Callable[[], None], output: Output) -> int:
    """Do something in a copy of this process, which Ctrl-C ends; gives its exit code, or minus a signal."""
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
    except Exception as error:  # noqa: BLE001 - the copy must not come back from here
        output.error(f"{type(error).__name__}: {error}", code=InternalError.code)
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os._exit(code)


def with_history(file: Path, work: Callable[[], None]) -> None:
    """Give `input` line editing, and a history that is there again the next time.

    What is new is added to the file: there may be several shells.
    """
    import readline

    readline.set_history_length(HISTORY_LINES)
    with suppress(OSError):  # a workspace that cannot be written to has no history
        file.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600))
        readline.read_history_file(file)
    known = readline.get_current_history_length()
    try:
        work()
    finally:
        with suppress(OSError):
            readline.append_history_file(max(0, readline.get_current_history_length() - known), file)
