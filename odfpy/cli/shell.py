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
from pathlib import Path
from types import FrameType

from odfpy.cli.output import Output
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import EngineError, InternalError, OdfError
from odfpy.query.tables import split_statements

HELP = r"""Statements end with a semicolon and may have several lines; every dataset is a table under its name.
  \d            list the datasets
  \d NAME       show the columns of one
  \?            this
  \q            leave (or Ctrl-D); Ctrl-C ends a query, or drops what is typed"""

HISTORY_LINES = 1000


class Shell:
    """Reads statements, runs them, prints what comes back.

    Attributes:
        workspace: whose datasets are the tables.
        output: where to print.
        engine: which engine runs the queries, the default one if None.
        limit: rows at most.
    """

    def __init__(self, workspace: Workspace, output: Output, engine: str | None, limit: int | None) -> None:
        self.workspace = workspace
        self.output = output
        self.engine = engine
        self.limit = limit
        self._is_reading = False

    def run(self, statement: str) -> None:
        """Run one statement.

        Raises:
            OdfError: as the engine says.
        """
        self.output.arrow(self.workspace.sql(statement, engine=self.engine, limit=self.limit))

    def _run_all(self, statements: Iterable[str]) -> None:
        for statement in statements:
            self.run(statement)

    def interact(self) -> None:
        """Go on until the person leaves."""
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
        pending = ""
        while True:
            try:
                line = self._read("...> " if pending else "odf> ")
                if not pending and line.strip() in ("\\q", "\\quit"):
                    return
                pending = self._take(f"{pending}\n{line}" if pending else line)
            except EOFError:
                self.output.text()
                return
            except OdfError as error:
                pending = ""
                self.output.error(error.message, error.hint, error.code)
            except KeyboardInterrupt:  # drops what is typed
                pending = ""
                self.output.text()

    def _take(self, text: str) -> str:
        """Do what the text says, once it is complete; gives back what is not."""
        if text.strip().startswith("\\"):
            self._meta(text.strip())
        elif text.rstrip().endswith(";"):
            code = _apart(lambda: self._run_all(split_statements(text)), self.output)
            if code == -signal.SIGINT:
                self.output.text()
                self.output.error("interrupted")
            elif code < 0:
                raise EngineError(f"The statement was ended by signal {-code}", hint="Perhaps memory did not suffice.")
        elif text.strip():
            return text
        return ""

    def _meta(self, line: str) -> None:
        command, _, argument = line.partition(" ")
        argument = argument.strip().rstrip(";").strip("`\"'")
        if command != "\\d":
            self.output.text(HELP)
        elif argument:
            from odfpy.data.type_text import type_text

            schema = self.workspace.state(argument).schema
            self.output.rows(["Column", "Type"], [(f.name, type_text(f.type)) for f in schema.fields] if schema else [])
        else:
            found = self.workspace.survey()[0]
            self.output.rows(
                ["Dataset", "Kind", "Records"], [(str(s.handle), s.kind.value, s.num_records) for s in found]
            )


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
    """Give `input` line editing, and a history that is there again the next time."""
    import readline

    readline.set_history_length(HISTORY_LINES)
    with suppress(OSError):
        readline.read_history_file(file)
    try:
        work()
    finally:
        with suppress(OSError):  # a workspace that cannot be written to has no history
            file.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(file)
