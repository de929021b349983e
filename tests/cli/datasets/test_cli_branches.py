"""`odf tag`, `branch`, `diff` and `merge`, as a person uses them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.rates"
ROW = b'{"event_time":"2024-02-01T00:00:00Z","id":%d,"name":"new"}\n'


def test_events_are_staged_looked_at_and_accepted(odf: Odf, workspace: Path):
    before = odf("list", "-o", "json").json
    assert odf("ingest", NAME, "--stdin", "--branch", "staging", stdin=ROW % 77).code == 0
    assert odf("list", "-o", "json").json == before
    shown = odf("diff", NAME, "staging").out
    assert "It would add 1 record in 1 block:" in shown
    assert "By key: 1 new, 0 changed, 0 gone" in shown
    assert odf("diff", NAME, "staging", "-o", "json").json["keys"] == {"new": 1, "changed": 0, "gone": 0}
    assert odf("branch", NAME, "-o", "json").json[0]["name"] == "staging"
    assert odf("merge", NAME, "staging").err == f"{NAME}: 1 record in 1 block\n"
    assert odf("branch", NAME).err == "No branches\n"
    assert '"new"' in odf("tail", NAME, "-n", "1", "-o", "json").out


def test_what_is_staged_is_dropped(odf: Odf, workspace: Path):
    odf("ingest", NAME, "--stdin", "-b", "staging", stdin=ROW % 77)
    assert odf("merge", NAME, "staging", "--drop").err.startswith("Dropped staging, which was at f1620")
    assert odf("merge", NAME, "staging").says.startswith(f"error: {NAME} has no branch staging (E655)")


def test_tags_are_made_used_and_deleted(odf: Odf, workspace: Path):
    assert odf("tag", NAME).err == "No tags\n"
    assert odf("tag", NAME, "v0", "0").err.startswith("tag v0 is at block 0 (f1620")
    assert odf("tag", NAME, "-o", "json").json[0]["sequenceNumber"] == 0
    assert len(odf("log", f"{NAME}@v0", "-o", "json").json) == 1
    assert odf("verify", f"{NAME}@v0", "--integrity").code == 0
    assert odf("tag", NAME, "v0", "--delete").err.startswith("Deleted tag v0, which was at f1620")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["tag", NAME, "12"], "Not a name for a tag: '12'"),
        (["tag", NAME, "v1", "99"], "has no block '99' in its history"),
        (["tag", NAME, "--delete"], "--delete takes exactly one tag"),
        (["tag", NAME, "v1", "1", "--delete"], "--delete takes exactly one tag"),
        (["tag", "nothing"], "No dataset 'nothing'"),
        (["branch", NAME, "a/b"], "Not a name for a branch: 'a/b'"),
        (["branch", NAME, "x", "--delete"], "has no branch x"),
        (["diff", NAME, "x"], "has no branch x"),
        (["diff", NAME], "Missing argument 'BRANCH|A'"),
        (["diff", NAME, "x", "--rows", "many"], "--rows must be a whole number"),
        (["merge", NAME, "x"], "has no branch x"),
        (["merge", NAME, "x", "--drop", "--ff-only"], "--drop cannot be combined with --ff-only"),
        (["merge", f"{NAME}@0", "x"], "names a dataset at a block"),
        (["tail", f"{NAME}@"], "has no block, tag or branch ''"),
        (["tail", f"{NAME}@x@y"], "has no block, tag or branch 'x@y'"),
        (["pull", NAME, "--branch", "x", "--dry-run"], "--branch cannot be combined with"),
        (["pull", NAME, "--branch", "x", "-r"], "--branch cannot be combined with --recursive"),
        (["ingest", NAME, "--watch", ".", "--branch", "x"], "--watch cannot be combined with"),
        (["ingest", NAME, "--stdin", "--branch", ".."], "Not a name for a branch: '..'"),
    ],
)
def test_wrong_input_is_told(arguments: list[str], says: str, odf: Odf, workspace: Path):
    found = odf(*arguments)
    assert found.code in (1, 2)
    assert says in found.says
