"""Progress of long work: a line that is redrawn on a terminal, or one line per step with --verbose."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from odfpy.cli.screen.output import Output
from odfpy.data.amounts import format_size
from odfpy.escaping import escape_controls

if TYPE_CHECKING:
    from odfpy.coordinator.storage.results import Progress

_REDRAW = 0.1
"""Minimum seconds between two updates of the same step."""

_TELLING = 0.5
"""Seconds until a rate is meaningful."""


_LONG = 2
"""Seconds until the line shows the elapsed time."""


class ProgressLine:
    """A line on standard error that is redrawn. It shows bytes done, total and rate, rows, and files.

    Attributes:
        clock: returns monotonic seconds.
    """

    def __init__(self, *, shown: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._is_shown = shown
        self._text = ""
        self._step: tuple[str, str, str] | None = None
        self._begun = self._drawn = 0.0
        self._first = 0

    def __call__(self, progress: Progress) -> None:
        """Show progress."""
        if not self._is_shown:
            return
        now = self.clock()
        step = (progress.subject, progress.action, progress.unit)
        if step != self._step or progress.done < self._first:
            self._step, self._begun, self._first = step, now, progress.done
        elif now - self._drawn < _REDRAW and progress.done != progress.total:
            return
        self._drawn = now
        seconds = int(now - self._begun)
        waiting = f" ({seconds} s)" if seconds >= _LONG else ""
        self._show(f"{describe(progress, self._rate(progress, now))}{waiting}")

    def clear(self) -> None:
        """Erase the line, before anything else is printed."""
        self._step = None
        self._show("")

    def _rate(self, progress: Progress, now: float) -> float | None:
        """Return units per second since the step began; None while it is not meaningful."""
        seconds = now - self._begun
        return (progress.done - self._first) / seconds if seconds >= _TELLING else None

    def _show(self, text: str) -> None:
        if not text and not self._text:
            return
        import shutil

        text = escape_controls(text)[: shutil.get_terminal_size().columns - 1]
        if text != self._text:
            sys.stderr.write(f"\r{text.ljust(len(self._text))}{'' if text else chr(13)}")
            sys.stderr.flush()
            self._text = text


class ProgressLog(ProgressLine):
    """A line for every step that begins."""

    def __init__(self, output: Output) -> None:
        super().__init__(shown=True)
        self._output = output

    def __call__(self, progress: Progress) -> None:
        """Print the current step, unless it was printed before."""
        text = f"{progress.subject}: {progress.action}"
        if text != self._text:
            self._output.detail(text)
            self._text = text

    def clear(self) -> None:
        """Do nothing: lines are not erased."""


def describe(progress: Progress, rate: float | None = None) -> str:
    """Describe progress in words.

    Args:
        progress: subject, step and amount.
        rate: units per second, for bytes.
    """
    begun = f"{progress.subject}: {progress.action}"
    if not progress.done and not progress.total:
        return begun
    is_bytes = progress.unit == "bytes"
    show: Callable[[int], str] = format_size if is_bytes else "{:,}".format
    of = f" of {show(progress.total)}" if progress.total else ""
    unit = "" if is_bytes else f" {progress.unit}"
    fast = f", {format_size(int(rate))}/s" if is_bytes and rate else ""
    return f"{begun} {show(progress.done)}{of}{unit}{fast}"
