"""Documents with console sessions: their blocks, run in one shell, and the output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.engine.session import MEMORY

NOT_RUN = re.compile(r"<!-- not run: .+? -->\n```console\n.*?^```$", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_END = "--- end of a command:"
_LISTENS = "for _ in $(seq 1200); do (: < /dev/tcp/localhost/{port}) 2>/dev/null && break; sleep 0.05; done"
"""Waits for a server, which a command has started in the background; for a minute at most."""
_SIGNS_OF_FAILURE = ("error:", "NOT VALID", " To do")
_MASKS = {
    r"f1620[0-9a-f]{2,64}(\.\.\.)?": "HASH",
    r"did:odf:f[0-9a-f]+": "ID",
    r"\b20(2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z?": "NOW",  # examples have older times
    r"\b\d+\.\d s\b": "SECONDS",
    r"\b\d+ (s|min) ago\b": "AGO",
    r"\b\d+\.\d KiB\b": "SIZE",  # of Parquet files, which names their writer
    r" +": " ",  # columns are as wide as the masked values
}


@dataclass(frozen=True, slots=True)
class Typed:
    """A command of a document, and the output shown below it; empty if none is shown."""

    command: str
    shown: tuple[str, ...]


def commands_in(text: str) -> Iterator[Typed]:
    """Yield the commands of a document, but for those that are marked as not run."""
    for block in _BLOCK.findall(NOT_RUN.sub("", text)):
        lines = block.splitlines()
        while lines:
            command = lines.pop(0).removeprefix("$ ")
            while not _is_whole(command):
                command += f"\n{lines.pop(0)}"
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            yield Typed(command, tuple(line for line in shown if line.strip()))


def _is_whole(command: str) -> bool:
    try:
        shlex.split(command)
    except ValueError:
        return False
    return "<<" not in command or (command.rstrip().endswith("EOF") and command.count("EOF") > 1)


def type_in(commands: list[Typed], folder: Path, home: Path, replaced: Mapping[str, str]) -> list[tuple[Typed, str]]:
    """Run commands in one shell, as users would; return the output of each.

    Args:
        commands: the commands, in order.
        folder: the initial folder, which has another name in documents.
        home: home of a new user.
        replaced: texts of the document that differ here, such as a port; commands in the background listen at these.
    """
    program = []
    for typed in commands:
        command = typed.command
        for text, here in replaced.items():
            command = command.replace(text, here)
        program.append(f"{command}\necho; echo '{_END}' $?\n")
        if command.endswith("&"):
            ports = [port for text, port in replaced.items() if text.isdigit() and re.search(rf"\b{port}\b", command)]
            program += [f"{_LISTENS.format(port=port)}\n" for port in ports]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "HOME": str(home),
        "PYTHONUNBUFFERED": "",  # users do not set it either
        # Otherwise each engine would create a start-up cache, which takes longer than the commands.
        "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
        "ODF_ENGINE_MEMORY": MEMORY,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "NO_COLOR": "1",
    }
    ends = f"for one in {shlex.quote(str(folder))}/*/.odf; do odf engine stop -q -w $(dirname $one); done"
    script = "".join(program) + f"kill $(jobs -p) 2>/dev/null; {ends}\n"
    done = subprocess.run(
        ["bash"], input=script, cwd=folder, env=environment, text=True, check=False, timeout=900,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    printed = re.split(rf"\n?{_END} (\d+)\n", done.stdout)
    return [
        (typed, f"{text.strip()}\nexit code {code}" if code != "0" else text.strip())
        for typed, text, code in zip(commands, printed[::2], printed[1::2], strict=False)
    ]


def difference(typed: Typed, printed: str, replaced: Mapping[str, str]) -> str | None:
    """Describe where the output of a command differs from the document; `...` matches anything."""
    failed = re.search(r"\nexit code \d+$", printed)
    expects_failure = any(sign in line for line in typed.shown for sign in _SIGNS_OF_FAILURE)
    if failed and not expects_failure:
        return f"$ {typed.command}\n{printed}"
    if not typed.shown:
        return None
    lines = [_masked(line, replaced) for line in printed.splitlines() if line.strip()]
    if failed:
        lines.pop()
    pattern = ""
    for shown in (_masked(line, {}) for line in typed.shown):
        if shown.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += re.escape(shown).replace(re.escape("..."), ".*") + r"\n"
    if re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)):
        return None
    return f"$ {typed.command}\n--- the document shows\n{chr(10).join(typed.shown)}\n--- it printed\n{printed}"


def _masked(line: str, replaced: Mapping[str, str]) -> str:
    for text, here in replaced.items():
        line = line.replace(here, text)
    for pattern, mask in _MASKS.items():
        line = re.sub(pattern, mask, line)
    return line.rstrip()
