"""Query results on the screen: as rows in some form, through a pager, or as a chart; with timing."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.cli.screen.output import Format, Output
from odfpy.cli.screen.progress import ProgressLine
from odfpy.data.amounts import count_of

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.engine.cancellation import JobProgress as EngineProgress
    from odfpy.query.answer import Answer

SHOWN: Final = 10_000
"""Maximum number of rows shown in the shell by default."""


@dataclass
class DisplayOptions:
    """Options for showing query results.

    Attributes:
        engine: the engine; None for the default.
        limit: maximum number of rows.
        timeout: maximum seconds of a query.
        timing: whether to print the duration.
        pager: whether long output is shown in a pager.
        plot: whether to draw results.
        png: target file for drawings.
        interactive: whether a user can continue with other queries.
    """

    engine: str | None = None
    limit: int | None = None
    timeout: float | None = None
    timing: bool = False
    pager: bool = False
    plot: bool = False
    png: str | None = None
    interactive: bool = False

    def run(self, workspace: Workspace, statement: str, output: Output, progress: ProgressLine) -> None:
        """Run a statement, show its progress, then its result.

        Args:
            workspace: the workspace.
            statement: the query.
            output: the output of the command.
            progress: the progress line.

        Raises:
            OdfError: raised by the engine.
        """
        from odfpy.query.service import CancellationToken, Query

        begun = time.monotonic()
        most = self._most(output)
        one_more = most is not None and most != self.limit  # request one more row to detect that there are more
        limit = most + 1 if most is not None and one_more else most
        asked = Query(statement, self.engine or "spark", limit=limit, timeout=self.timeout)
        with (
            _Wait(progress) as wait,
            workspace.queries.service.run(asked, CancellationToken(on_progress=wait.tell)) as answer,
        ):
            rows = _Rows(answer, most, wait)
            if self.plot or self.png is not None:
                self._draw(answer, rows, output)
                seconds = time.monotonic() - begun
            elif output.is_streamed and not (self.pager and output.form is Format.JSON):
                output.flow(answer.schema.names, rows)
                seconds = time.monotonic() - begun
            else:
                found = list(rows)
                seconds = time.monotonic() - begun
                with through_pager(enabled=self.pager):
                    output.rows(answer.schema.names, found)
        if rows.is_cut:
            output.info(f"These are the first {most} rows; `odf export` writes all of them to a file")
        if self.timing:
            output.info(f"({count_of(rows.count, 'row')}, {seconds:.3f} s)")

    def _most(self, output: Output) -> int | None:
        bounds = [self.limit]
        if self.plot or self.png is not None:
            from odfpy.cli.screen.plot import MAX_POINTS

            bounds.append(MAX_POINTS)
        elif self.interactive and output.form is Format.TABLE and self.limit is None:
            bounds.append(SHOWN)
        return min((bound for bound in bounds if bound is not None), default=None)

    def _draw(self, answer: Answer, rows: _Rows, output: Output) -> None:
        import pyarrow as pa

        from odfpy.cli.screen.plot import chart_of, draw, write_png

        chart = chart_of(pa.Table.from_batches(rows.batches(), answer.schema))
        if self.png is not None:
            write_png(chart, Path(self.png))
            output.info(f"Wrote {self.png}")
        else:
            output.drawing(draw(chart))


class _Rows:
    """The rows of a result as plain values, up to a limit.

    Attributes:
        count: number of rows yielded so far.
        is_cut: whether there were more rows than the limit.
    """

    def __init__(self, answer: Answer, most: int | None, wait: _Wait) -> None:
        self.count = 0
        self.is_cut = False
        self._answer = answer
        self._most = most
        self._wait = wait

    def batches(self) -> Iterator[Any]:
        """Yield the rows as Arrow batches."""
        for batch in self._answer:
            self._wait.end()
            room = batch.num_rows if self._most is None else self._most - self.count
            self.is_cut = self.is_cut or batch.num_rows > room
            self.count += min(room, batch.num_rows)
            if room:
                yield batch.slice(0, room)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        import pyarrow as pa

        from odfpy.data.rows.plain_values import columns_of

        for batch in self.batches():
            yield from zip(*columns_of(pa.Table.from_batches([batch])), strict=True)


class _Wait:
    """Progress display of the engine until the first rows arrive. Thread-safe."""

    def __init__(self, line: ProgressLine) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._is_over = False

    def tell(self, heard: EngineProgress) -> None:
        """Show the reported progress."""
        from odfpy.coordinator.storage.results import engine_listener

        with self._lock:
            if not self._is_over:
                engine_listener("query", self._line)(heard)

    def end(self) -> None:
        """Stop the display when rows arrive."""
        with self._lock:
            if not self._is_over:
                self._is_over = True
                self._line.clear()

    def __enter__(self) -> _Wait:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


# --- The pager -------------------------------------------------------------------------------------------------------


class _Screen(io.StringIO):
    """Terminal output, buffered until its length is known."""

    def isatty(self) -> bool:
        return True


@contextmanager
def through_pager(*, enabled: bool) -> Iterator[None]:
    """Send printed output through a pager if it is longer than the screen."""
    command = _pager() if enabled and sys.stdout.isatty() else None
    if command is None:
        yield
        return
    screen = _Screen()
    with redirect_stdout(screen):
        yield
    text = screen.getvalue()
    if text.count("\n") < shutil.get_terminal_size().lines or not _page(command, text):
        sys.stdout.write(text)


def _pager() -> list[str] | None:
    """Return the pager command: `ODF_PAGER`, `PAGER`, or `less`; None if that is `cat` or empty."""
    wanted = next((os.environ[name] for name in ("ODF_PAGER", "PAGER") if name in os.environ), "less")
    try:
        words = shlex.split(wanted)
    except ValueError:
        return None
    return None if words in ([], ["cat"]) or shutil.which(words[0]) is None else words


def _page(command: list[str], text: str) -> bool:
    """Show a text in the pager; return false if there is none.

    Ctrl-C is left to the pager. It is not ignored here, since the pager would inherit that.
    """
    sys.stdout.flush()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        environment = {"LESS": "FRSX", **os.environ}
        with suppress(BrokenPipeError):  # the user has left the pager
            subprocess.run(command, input=text, env=environment, text=True, check=False)
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)
    return True
