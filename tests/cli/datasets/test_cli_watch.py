"""`odf ingest --watch` at a terminal, and with its output to a program."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.processes.terminal import PATIENCE, start, terminal

from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

LINE = '{"event_time":"2024-02-01T00:00:00Z","id":%d,"name":"z"}\n'


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text(text)
    (folder / f".{name}").rename(folder / name)


def test_a_person_watches_and_ends_it_with_ctrl_c(workspace: Path) -> None:
    inbox = workspace / "inbox"
    put(inbox, "b.ndjson", LINE % 8)
    put(inbox, "a.ndjson", LINE % 7)
    with terminal(
        "ingest", "com.example.rates", "--watch", "inbox", cwd=workspace, columns=200, NO_COLOR="1"
    ) as screen:
        screen.wait_for("Watching inbox for com.example.rates; Ctrl-C ends it")
        screen.wait_for("com.example.rates: a.ndjson: updated, 1 record in 1 block")
        screen.wait_for("com.example.rates: b.ndjson: updated, 1 record in 1 block")
        put(inbox, "c.ndjson", "nonsense\n")
        screen.wait_for("error: com.example.rates: inbox/c.ndjson, line 1")
        put(inbox, "d.ndjson", LINE % 9)
        screen.wait_for("com.example.rates: d.ndjson: updated")
        screen.wait_for("watching inbox", screen.screen.index("d.ndjson: updated"))
        screen.type("\x03")
        assert screen.wait() == 1, "one file could not be taken in"
        assert screen.plain.rstrip().endswith("No longer watching")
        assert "Traceback" not in screen.plain
    assert Workspace.open(workspace).datasets.summary("com.example.rates").num_records == 6


def test_a_program_reads_a_line_for_each_file(workspace: Path) -> None:
    inbox = workspace / "inbox"
    put(inbox, "a.ndjson", LINE % 7)
    put(inbox, "x.csv", "")
    words = ("ingest", "com.example.rates", "--watch", "inbox/*.ndjson", "-o", "ndjson")
    process = start(*words, cwd=workspace, flags=("-u",))
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert (told["input"], told["records"], told["error"]) == ("a.ndjson", 1, None)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert out == ""
    assert err.startswith("Watching inbox/*.ndjson for com.example.rates; Ctrl-C ends it\n")
    assert process.returncode in (0, 130), "130 where the signal came before the next look at the folder"


@pytest.mark.parametrize("more", [["file.csv"], ["--stdin"]])
def test_a_watch_takes_nothing_else(more: list[str], odf: Odf, workspace: Path) -> None:
    refused = odf("ingest", "com.example.rates", "--watch", ".", *more)
    assert refused.code == 2
    assert "--watch cannot be combined with" in refused.says


def test_a_folder_that_is_not_there(odf: Odf, workspace: Path) -> None:
    assert odf("ingest", "com.example.rates", "--watch", "nowhere").code == 2
