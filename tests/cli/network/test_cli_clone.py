"""`odf clone`: a workspace for a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.fixtures import KAMU

from odfpy.coordinator.workspace import Workspace
from odfpy.repository.objects import MAX_PARALLEL

STOCK = str(KAMU / "stock")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is in no workspace."""
    monkeypatch.chdir(tmp_path)


def test_a_folder_named_for_the_dataset(odf, tmp_path: Path) -> None:
    done = odf("clone", STOCK)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("stock: updated")
    assert done.err.endswith("Created the workspace stock\n")
    assert odf("-w", "stock", "verify", "stock").code == 0
    assert odf("-w", "stock", "pull", "stock").err.startswith("stock: up to date"), "it knows where it came from"


def test_other_names(odf) -> None:
    assert odf("clone", STOCK, "place", "--as", "com.example.mine", "-o", "json").json[0]["name"] == "com.example.mine"
    assert odf("-w", "place", "list", "-o", "json").json[0]["name"] == "com.example.mine"


def test_with_what_it_is_derived_from(odf, tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root("source"), derivative("derived", "source"))
    feed(there, "source", "1 a", "2 b")
    list(there.pull(all=True))
    list(there.push(all=True, to=str(tmp_path / "mirror")))
    assert odf("clone", "./mirror/derived", "-r").code == 0
    assert odf("-w", "derived", "verify", "--all").code == 0
    assert len(Workspace.open("derived").datasets.all()) == 2


def test_from_a_repository_of_this_workspace(odf, tmp_path: Path) -> None:
    Workspace.init(tmp_path / "here").remotes.repositories.add("golden", str(KAMU))
    assert odf("-w", "here", "clone", "golden/stock", "copy").code == 0
    assert len(Workspace.open("copy").datasets.all()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["stock"], "Not a URL or path: 'stock'"),
        (["golden/stock"], "named repositories"),
        (["./nowhere"], "No dataset there"),
        (["http://127.0.0.1:9/stock"], "Cannot read http://127.0.0.1:9/stock/refs/head"),
        ([STOCK, "--as", "no name"], "no name"),
        (["ftp://example.com/x"], "ftp"),
    ],
)
def test_what_cannot_be_cloned_leaves_no_folder(odf, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = odf("clone", *arguments)
    assert done.code in (1, 2)
    assert words in done.says
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it(odf, tmp_path: Path) -> None:
    (tmp_path / "stock").mkdir()
    assert odf("clone", STOCK).code == 0, "an empty folder will do"
    done = odf("clone", STOCK)
    assert (done.code, done.says.splitlines()[0]) == (
        1,
        "error: stock already exists, and is not an empty folder (E116)",
    )
    (tmp_path / "file").write_text("")
    assert odf("clone", STOCK, "file").code == 1
    (tmp_path / "empty").mkdir()
    assert odf("clone", "./nowhere", "empty").code == 1
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_copy_that_breaks_off_can_be_gone_on_with(odf, tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root())
    for day in range(1, MAX_PARALLEL + 2):
        feed(there, "root", f"{day} a", day=day)
    list(there.push(["root"], to=str(tmp_path / "mirror" / "root")))
    # The last slice is asked for when another one has come.
    event = there.storage.get("root").state.last_data_event
    assert event is not None
    assert event.new_data is not None
    file = tmp_path / "mirror" / "root" / "data" / str(event.new_data.physical_hash)
    content = file.read_bytes()
    file.unlink()
    done = odf("clone", "./mirror/root")
    assert done.code == 1
    assert f"odf -w root pull {(tmp_path / 'mirror' / 'root').as_uri()}" in done.err
    file.write_bytes(content)
    assert odf("-w", "root", "pull", (tmp_path / "mirror" / "root").as_uri()).code == 0
    assert odf("-w", "root", "verify", "root").code == 0
