"""The session of a command: its workspace and its output."""

from __future__ import annotations

import os
import sys
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.cli.screen.output import Format, Output, Verbosity
from odfpy.cli.screen.progress import ProgressLine, ProgressLog
from odfpy.cli.screen.terminal import put
from odfpy.errors import UsageError, WorkspaceNotFound
from odfpy.stages import stage
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace

WORKSPACE = "ODF_WORKSPACE"
"""The environment variable that names the workspace if `--workspace` is missing."""


@dataclass
class Session:
    """One run of a command.

    Attributes:
        folder: where to search for the workspace.
        output: the output of the command.
        began: `time.perf_counter` at the program's first line; None if it has no process of its own.
    """

    folder: str = field(default_factory=lambda: os.environ.get(WORKSPACE) or ".")
    output: Output = field(default_factory=Output)
    began: float | None = None

    def configure(self, *, workspace: str | None, quiet: bool | None, verbose: int | None) -> None:
        """Apply options of the whole program, as far as they are given.

        Args:
            workspace: folder of the workspace; None for the current one.
            quiet: whether only errors and data are printed.
            verbose: number of times that --verbose was given.
        """
        if workspace is not None:
            self.folder = workspace
        if quiet:
            self.output.verbosity = Verbosity.QUIET
        elif verbose:
            self.output.verbosity = Verbosity(min(max(self.output.verbosity.value, 0) + verbose, 2))

    def output_as(self, form: str | None) -> Output:
        """Return the output in the form named by `--output`."""
        if form is not None:
            self.output.form = Format.parse(form)
        return self.output

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace from `--workspace`, `ODF_WORKSPACE`, or the current folder."""
        with stage("workspace"):
            return self._opened()

    def _opened(self) -> Workspace:
        from odfpy.coordinator.workspace import Workspace

        try:
            return Workspace.open(self.folder)
        except WorkspaceNotFound as error:
            if self.folder != os.environ.get(WORKSPACE):
                raise
            hint = f"The variable {WORKSPACE} names it: create one there with `odf init`, or select another with -w."
            raise error.with_message(error.message, hint=hint) from None

    def wait_for_locks(self, duration: str | None) -> None:
        """Wait for other writers of a dataset instead of failing at once.

        Args:
            duration: value of `--wait`; None for no wait.

        Raises:
            InvalidValue: the value is not a duration.
        """
        from odfpy.data.duration import Duration

        if duration is not None:
            self.workspace.storage.lock_patience = float(Duration.parse(duration).seconds)

    @cached_property
    def progress(self) -> ProgressLine:
        """The progress display: one line on a terminal, line by line with --verbose."""
        if self.output.verbosity.value > 0:
            return ProgressLog(self.output)
        return ProgressLine(shown=self.output.verbosity is Verbosity.NORMAL and sys.stderr.isatty())

    def confirm(self, question: str, *, yes: bool) -> bool:
        """Ask for confirmation before an irreversible step.

        Raises:
            UsageError: there is no terminal to ask on.
        """
        if yes:
            return True
        if not sys.stdin.isatty():
            raise UsageError(f"Confirmation needed, but there is no terminal: {question}", hint="Add --yes.")
        put(sys.stderr, f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")
