"""The session of a command: the workspace, and where to print."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.cli.screen.output import Format, Output, Verbosity
from odfpy.cli.screen.progress import ProgressLine, ProgressLog
from odfpy.cli.screen.terminal import put
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace


@dataclass
class Session:
    """One run of the command line.

    Attributes:
        folder: where to look for the workspace.
        output: where to print.
    """

    folder: str = "."
    output: Output = field(default_factory=Output)

    def configure(self, *, workspace: str | None, quiet: bool | None, verbose: int | None) -> None:
        """Take in options of the whole program, as far as they are given.

        Args:
            workspace: folder of the workspace, None for the current one.
            quiet: whether only errors and data are printed.
            verbose: how much more is printed.
        """
        if workspace is not None:
            self.folder = workspace
        if quiet:
            self.output.verbosity = Verbosity.QUIET
        elif verbose:
            self.output.verbosity = Verbosity(min(max(self.output.verbosity.value, 0) + verbose, 2))

    def output_as(self, form: str | None) -> Output:
        """Return where to print data in the form that `--output` names."""
        if form is not None:
            self.output.form = Format.parse(form)
        return self.output

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace of the current folder, or of `--workspace`."""
        from odfpy.coordinator.workspace import Workspace

        return Workspace.open(self.folder)

    @cached_property
    def progress(self) -> ProgressLine:
        """Tell how far long work is: as one line on a terminal, line by line with --verbose."""
        if self.output.verbosity.value > 0:
            return ProgressLog(self.output)
        return ProgressLine(shown=self.output.verbosity is Verbosity.NORMAL and sys.stderr.isatty())

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Ask before something that cannot be undone.

        Raises:
            UsageError: nobody is there to ask.
        """
        if yes:
            return True
        if not sys.stdin.isatty():
            raise UsageError(f"Nobody is there to answer: {question}", hint="Confirm with --yes.")
        put(sys.stderr, f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
