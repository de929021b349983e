"""Make the screenshots of the terminal in `docs/images`, from commands that are run here on the example datasets.

Colours are those of the reader's theme, light or dark. Durations are left out, since they differ each time; the folder
is shown as one of anybody's.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from fcntl import ioctl
from pathlib import Path
from struct import pack
from termios import TIOCSWINSZ

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

REPOSITORY = Path(__file__).resolve().parents[2]
PICTURES = REPOSITORY / "docs" / "images"
ODF = Path(sys.executable).with_name("odf")
HOME = "/home/you"
WIDTH, HEIGHT = 104, 60

SQL = (
    "select observed_at as time, avg(wind_speed) as wind, avg(visib) as visibility"
    ' from "org.nycflights.weather" group by time order by time'
)
STORIES = {
    "terminal-pull": ("pull -r org.nycflights.disruptions", "inspect lineage org.nycflights.disruptions"),
    "terminal-diff": ("pull org.nycflights.timetable", "diff org.nycflights.timetable 5 head --rows 8"),
    "terminal-plot": (f"sql --engine datafusion --plot -c {shlex.quote(SQL)}",),
    "terminal-verify": (
        "verify -r org.nycflights.disruptions",
        "# one byte of one file changes",
        "verify --integrity org.nycflights.flights",
    ),
}

_DURATION = re.compile(r"[;,] \d+\.\d s(?=\))|(?<=\()\d+\.\d s; ")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-HJKSTfhlnsu]")

# Background, text, then black, red, green, yellow, blue, magenta, cyan, white as terminals have them.
LIGHT = TerminalTheme(
    (246, 248, 250),
    (36, 48, 58),
    [
        (36, 48, 58),
        (180, 35, 24),
        (25, 110, 50),
        (140, 90, 0),
        (30, 90, 170),
        (130, 60, 150),
        (0, 110, 125),
        (90, 100, 110),
    ],
)
DARK = TerminalTheme(
    (21, 27, 33),
    (222, 229, 235),
    [
        (70, 80, 90),
        (255, 135, 125),
        (115, 205, 140),
        (230, 190, 100),
        (125, 175, 250),
        (215, 150, 235),
        (95, 205, 215),
        (222, 229, 235),
    ],
)

_FRAME = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" xml:space="preserve" role="img">
  <title>NAME</title>
  <style>
    text {{ font: {char_height}px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; white-space: pre }}
    .back {{ fill: LIGHT_BACK }}
{styles}
    @media (prefers-color-scheme: dark) {{
      .back {{ fill: DARK_BACK }}
DARK_STYLES
    }}
  </style>
  <rect class="back" width="100%" height="100%" rx="8"/>
  <g transform="translate(12, 10)">
{matrix}
  </g>
</svg>
"""


def main() -> None:
    """Run all commands, in a workspace that is thrown away."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder) / "example"
        workspace.mkdir()
        os.environ["XDG_CONFIG_HOME"] = f"{folder}/config"
        shutil.copytree(REPOSITORY / "snapshots" / "data", workspace / "data")
        for arguments in (["init"], ["add", "-r", str(REPOSITORY / "snapshots")]):
            subprocess.run([ODF, *arguments], cwd=workspace, check=True, capture_output=True)
        try:
            for name, story in STORIES.items():
                text = "\n".join(_shown(line, workspace) for line in story)
                (PICTURES / f"{name}.svg").write_text(picture(text.rstrip("\n"), story[0]), encoding="utf-8")
        finally:
            subprocess.run([ODF, "engine", "stop"], cwd=workspace, check=False, capture_output=True)


def _shown(line: str, workspace: Path) -> str:
    if line.startswith("#"):
        _damage(workspace)
        return f"\x1b[2m$ {line}\x1b[0m"
    return f"\x1b[1m$ odf {line}\x1b[0m\n{output([str(ODF), *shlex.split(line)], workspace)}"


def _damage(workspace: Path) -> None:
    """Turn one byte in the middle of the largest data file."""
    victim = max(workspace.glob(".odf/datasets/*/data/*"), key=lambda path: (path.stat().st_size, path.name))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 0xFF
    victim.write_bytes(content)


def output(command: list[str], folder: Path) -> str:
    """What stands in a terminal after a command, with its colours."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", COLUMNS=str(WIDTH), LINES=str(HEIGHT))
        os.execv(command[0], command)
    ioctl(terminal, TIOCSWINSZ, pack("HHHH", HEIGHT, WIDTH, 0, 0))
    read = b""
    with contextlib.suppress(OSError):  # how Linux says that the other side is closed
        while part := os.read(terminal, 1 << 16):
            read += part
    os.close(terminal)
    os.waitpid(process, 0)
    lines = _CONTROL.sub("", read.decode().replace("\r\n", "\n")).split("\n")
    shown = "\n".join(line.rpartition("\r")[2] for line in lines)  # progress is written over
    return _DURATION.sub("", shown.replace(str(folder.parent), HOME))


def picture(text: str, name: str) -> str:
    """A terminal with a text, as SVG."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text, overflow="fold"))
    export = {"title": "", "unique_id": "t"}
    dark = console.export_svg(theme=DARK, clear=False, code_format="{styles}", **export)
    drawn = console.export_svg(theme=LIGHT, code_format=_FRAME, **export)
    for word, value in {
        "NAME": f"$ odf {name}".replace("&", "&amp;").replace("<", "&lt;"),
        "DARK_STYLES": dark,
        "LIGHT_BACK": LIGHT.background_color.hex,
        "DARK_BACK": DARK.background_color.hex,
    }.items():
        drawn = drawn.replace(word, value)
    drawn = re.sub(r' clip-path="[^"]*"', "", drawn).replace("&#160;", " ")
    drawn = re.sub(r"<text [^>]*>\n</text>", "\n", drawn)  # the ends of lines
    drawn = re.sub(r"^(?=\.)", "    ", drawn, flags=re.MULTILINE)
    return "".join(f"{line.rstrip()}\n" for line in drawn.split("\n") if line.strip())


if __name__ == "__main__":
    main()
