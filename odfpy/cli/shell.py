"""The interactive side of `odf sql`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from odfpy.cli.output import Output
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError
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

    def run(self, statement: str) -> None:
        """Run one statement.

        Raises:
            OdfError: as the engine says.
        """
        self.output.arrow(self.workspace.sql(statement, engine=self.engine, limit=self.limit))

    def interact(self) -> None:
        """Go on until the person leaves."""
        self.output.text(f"SQL shell of {self.workspace.root}. \\? for help, \\q to leave.")
        with_history(self.workspace.storage.cache / "sql-history", self._loop)

    def _loop(self) -> None:
        pending = ""
        while True:
            line = None
            try:
                line = input("...> " if pending else "odf> ")
                if not pending and line.strip() in ("\\q", "\\quit"):
                    return
                pending = self._take(f"{pending}\n{line}" if pending else line)
            except EOFError:
                self.output.text()
                return
            except OdfError as error:
                pending = ""
                self.output.error(error.message, error.hint, error.code)
            except KeyboardInterrupt:  # ends the query, or drops what is typed, but not the shell
                pending = ""
                self.output.text()
                if line is not None:
                    self.output.error("interrupted")

    def _take(self, text: str) -> str:
        """Do what the text says, once it is complete; gives back what is not."""
        if text.strip().startswith("\\"):
            self._meta(text.strip())
        elif text.rstrip().endswith(";"):
            for statement in split_statements(text):
                self.run(statement)
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
