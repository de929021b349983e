"""What every command starts from: the workspace, and where to print."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from odfpy.cli.output import Format, Output, Verbosity
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.results import Progress
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
        """Take in options of the whole program, as far as they are given."""
        if workspace is not None:
            self.folder = workspace
        if quiet:
            self.output.verbosity = Verbosity.QUIET
        elif verbose:
            self.output.verbosity = Verbosity(min(max(self.output.verbosity.value, 0) + verbose, 2))

    def output_as(self, form: str | None) -> Output:
        """Where to print data in the form that `--output` names."""
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
        """Tells how far long work is: as one line on a terminal, line by line with --verbose."""
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
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")


class ProgressLine:
    """One line on standard error that is written over and over."""

    def __init__(self, *, shown: bool) -> None:
        self._is_shown = shown
        self._text = ""

    def __call__(self, progress: Progress) -> None:
        """Show a sign of life."""
        if self._is_shown:
            self._show(_described(progress))

    def clear(self) -> None:
        """Take the line away, before anything else is printed."""
        self._show("")

    def _show(self, text: str) -> None:
        if not text and not self._text:
            return
        import shutil

        text = text[: shutil.get_terminal_size().columns - 1]
        if text != self._text:
            sys.stderr.write(f"\r{text.ljust(len(self._text))}{'' if text else chr(13)}")
            sys.stderr.flush()
            self._text = text


class ProgressLog(ProgressLine):
    """A line for everything that is begun."""

    def __init__(self, output: Output) -> None:
        super().__init__(shown=True)
        self._output = output

    def __call__(self, progress: Progress) -> None:
        """Say what is done now, unless that was said before."""
        text = f"{progress.subject}: {progress.action}"
        if text != self._text:
            self._output.detail(text)
            self._text = text

    def clear(self) -> None:
        """Nothing: lines stay."""


def _described(progress: Progress) -> str:
    from odfpy.cli.output import sized

    if not progress.done and not progress.total:
        return f"{progress.subject}: {progress.action}"
    show = sized if progress.unit == "bytes" else str
    of = f" of {show(progress.total)}" if progress.total else ""
    unit = "" if progress.unit == "bytes" else f" {progress.unit}"
    return f"{progress.subject}: {progress.action} {show(progress.done)}{of}{unit}"
