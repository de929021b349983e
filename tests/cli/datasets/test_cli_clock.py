"""Blocks of the future, on the screen and for programs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import feed

from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.rates"


@pytest.fixture
def early(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace with a block that was written while the clock was three days ahead."""
    with monkeypatch.context() as patch:
        really_now = time.time_ns
        patch.setattr(time, "time_ns", lambda: really_now() + (3 * 24 + 1) * 3600 * 10**9)
        feed(Workspace.open(workspace), NAME, "7 x", day=4)
    return workspace


def test_the_log_marks_them(odf: Odf, early: Path) -> None:
    lines = [line for line in odf("log", NAME).out.splitlines() if line.startswith("time")]
    assert lines[0].endswith("  (3 days ahead of the local clock)")
    assert not any("ahead" in line for line in lines[1:])
    newest, before, *_ = odf("log", NAME, "-o", "json").json
    assert newest["aheadOfClock"] == pytest.approx((3 * 24 + 1) * 3600, abs=600)
    assert "aheadOfClock" not in before
    assert "(3 days ahead of the local clock)\n" in odf("log", NAME, "-o", "yaml").out


def test_verification_remarks_on_them(odf: Odf, early: Path) -> None:
    told = odf("verify", NAME)
    assert told.code == 0
    assert "  warning: The block has a time in the future: 3 days ahead of the local clock (E661)\n" in told.out


def test_a_copy_wants_a_word(odf: Odf, early: Path, tmp_path: Path) -> None:
    mirror = str(tmp_path / "mirror" / "rates")
    assert odf("push", NAME, "--to", mirror).code == 0
    told = odf("pull", mirror)
    assert told.code == 1
    assert "which is 3 days ahead of the local clock" in told.says
    assert "(E661)" in told.says
    assert odf("clone", mirror, str(tmp_path / "refused")).code == 1
    (tree,) = odf("clone", mirror, str(tmp_path / "copy"), "--allow-future", "-o", "json").json
    assert (tree["outcome"], [warning["kind"] for warning in tree["warnings"]]) == ("updated", ["clock"])


def test_a_commit_after_them_says_that_it_has_their_time(odf: Odf, early: Path) -> None:
    rows = b'{"event_time":"2024-01-05","id":8,"name":"y"}\n'
    told = odf("ingest", NAME, "--stdin", stdin=rows)
    assert "  warning: the last block is of " in told.err
    assert "blocks that are written until then get the same time" in told.err
