"""Datasets that are derived from each other, and long chains, on the command line."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from cli.conftest import Odf
from support.chains.circles import chained, rederive
from support.chains.workspaces import derivative, feed, root, workspace_with

QUERY = "select op, event_time, id, name from source"
TOLD = "Circular dependency: a -> b -> a"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`a` and `b` are derived from each other, `c` from `b`; `r` and `e` have to do with none of them."""
    manifests = [derivative(name, source, QUERY) for name, source in ("ar", "ba", "cb", "er")]
    made = workspace_with(tmp_path / "workspace", root("r"), *manifests)
    feed(made, "r", "1 x")
    rederive(made, "a", "b")
    monkeypatch.chdir(made.root)
    return made.root


@pytest.mark.usefixtures("folder")
def test_one_circle_fails_alone(odf: Odf, tmp_path: Path):
    for command in (["pull"], ["pull", "--dry-run"], ["verify", "--integrity"], ["push", "--to", f"{tmp_path}/there/"]):
        done = odf(*command, "--all")
        assert done.code == 1
        assert TOLD in done.out + done.err
        assert "`odf reset a 1` resets a to its previous query" in done.out + done.err
    assert {path.name for path in (tmp_path / "there").iterdir() if path.is_dir()} == {"c", "e", "r"}
    assert odf("list", "--wide").code == 0
    assert odf("show", "a").code == 0
    assert odf("gc", "--yes").code == 0


@pytest.mark.usefixtures("folder")
def test_lineage_draws_the_circle_and_tells_the_way_out(odf: Odf):
    shown = odf("inspect", "lineage", "a")
    assert shown.code == 1
    assert [line.split()[:2] for line in shown.out.splitlines()] == [["a", "derivative,"], ["└─", "b"], ["└─", "a"]]
    assert shown.out.splitlines()[-1].endswith(", as above: a cycle")
    assert TOLD in shown.says
    tree = odf("inspect", "lineage", "c", "-o", "json").json
    assert tree["inputs"][0]["inputs"][0]["inputs"][0] == {
        **tree["inputs"][0], "takenIn": None, "holdsBack": False, "circle": True, "inputs": []
    }  # fmt: skip


@pytest.mark.usefixtures("folder")
def test_the_hint_mends_it(odf: Odf):
    assert odf("reset", "a", "1", "--yes").code == 0
    assert odf("pull", "--all").code == 0
    assert odf("inspect", "lineage", "c").code == 0


def test_add_replace_refuses_it(odf: Odf, folder: Path):
    assert odf("reset", "a", "1", "--yes").code == 0
    (folder / "a.yaml").write_text(derivative("a", "b", QUERY))
    for options in ([], ["--dry-run"]):
        refused = odf("add", "--replace", "a.yaml", *options)
        assert refused.code == 2
        assert TOLD in refused.says


def test_the_lineage_of_a_long_chain(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = workspace_with(tmp_path / "workspace", root("d0"))
    chained(made, "d0", [f"d{number}" for number in range(1, 120)])
    monkeypatch.chdir(made.root)
    rows = list(csv.DictReader(io.StringIO(odf("inspect", "lineage", "d119", "-o", "csv").out)))
    assert [(row["depth"], row["name"]) for row in rows] == [(str(depth), f"d{119 - depth}") for depth in range(120)]
    assert len(odf("inspect", "lineage", "d119").out.splitlines()) == 120
    for form in ("json", "yaml"):
        assert odf("inspect", "lineage", "d99", "-o", form).code == 0
        refused = odf("inspect", "lineage", "d119", "-o", form)
        assert refused.code == 2
        assert "more than 100 datasets deep" in refused.says
        assert "`-o csv`" in refused.says
