"""A small disk in memory that only one process sees (`unshare` and `mount` of util-linux), and stories on it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def run_story(story: str, disk: Path, inputs: Path) -> None:
    """Run a story in a separate process, in which it may mount a disk.

    Args:
        story: a program, which gets the folders as its arguments.
        disk: an empty folder.
        inputs: a folder outside of the disk.
    """
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", sys.executable, "-c", story, disk, inputs],
        cwd=TESTS, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class SmallDisk:
    """The disk, as a story sees it.

    Attributes:
        folder: where it is.
        workspace: workspace of the commands.
    """

    folder: Path
    workspace: Path

    def mount(self, size: str) -> None:
        """Mount it."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", self.folder], check=True)

    def odf(self, *arguments: object) -> tuple[int, str, str]:
        """Run a command; return its exit code and output."""
        from odfpy.cli.app import run

        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(["-w", str(self.workspace), *map(str, arguments)])
        assert "Traceback" not in err.getvalue(), err.getvalue()
        assert "internal error" not in err.getvalue(), err.getvalue()
        return code, out.getvalue(), err.getvalue()

    def fill(self, but: int) -> None:
        """Fill it, except for a number of bytes."""
        block, filling = bytes(4096), self.folder / "filling"
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while True:
                file.write(block)
        os.truncate(filling, max(0, filling.stat().st_size - but))
