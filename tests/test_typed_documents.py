"""Documents that a person types along do what they show, word for word."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import pytest
from support.typed import NOT_RUN, commands_in, difference, type_in

REPOSITORY = Path(__file__).parents[1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.spark
@pytest.mark.processes
def test_the_readme(tmp_path: Path) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    text = text[text.index("## Five minutes") :]
    assert len(NOT_RUN.findall(text)) == 1, "only the installation"
    folder, home = tmp_path / "odfpy", tmp_path / "home"
    home.mkdir()
    shutil.copytree(REPOSITORY / "snapshots", folder / "snapshots")
    replaced = {"/home/you/odfpy": str(folder), "8000": str(free_port())}
    commands = list(commands_in(text))
    assert len(commands) >= 12
    typed = type_in(commands, folder, home, replaced)
    assert len(typed) == len(commands), typed[-1]
    wrong = [found for one, printed in typed if (found := difference(one, printed, replaced))]
    assert wrong == [], "\n\n".join(wrong)
