"""Making, finding, renaming and deleting; reading; settings."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, rows, workspace_with

import odfpy
from odfpy.chain.encoding import load_snapshots
from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.reading.compare import Change
from odfpy.coordinator.requests import PullRequest
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import (
    AlreadyExists,
    DatasetLocked,
    DatasetNotFound,
    IntegrityError,
    InvalidValue,
    MalformedManifest,
    OdfError,
    RepositoryNotFound,
    UnsupportedVersion,
    UsageError,
    WorkspaceNotFound,
)


def test_a_workspace_is_found_from_any_folder_below(tmp_path: Path) -> None:
    Workspace.init(tmp_path)
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert odfpy.Workspace.open(deep).root == tmp_path


def test_a_path_that_is_no_text_is_refused(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    with pytest.raises(UsageError, match=r"has to be UTF-8, and '.*\\udcff' is not"):
        Workspace.init(folder)
    assert not folder.exists()
    workspace_with(tmp_path / "moved").root.rename(folder)
    with pytest.raises(UsageError, match="has to be UTF-8"):
        Workspace.open(folder)


def test_a_name_that_two_datasets_have_is_that_of_none(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), root("b"), root("c"))
    first, second = (workspace.storage.get(name) for name in ("a", "b"))
    shutil.copy(first.folder / "info" / "alias", second.folder / "info" / "alias")  # as a wrong backup may bring it
    workspace = Workspace.open(tmp_path)
    assert [str(one.handle.alias) for one in workspace.storage.datasets()] == ["c"]
    for verb in (workspace.datasets.delete, workspace.tail, workspace.datasets.summary):
        with pytest.raises(IntegrityError, match="has the name a, which another dataset also has"):
            verb("a")
    workspace.datasets.rename(str(second.handle.id), "b")
    assert [str(one.handle.alias) for one in Workspace.open(tmp_path).storage.datasets()] == ["a", "b", "c"]


def test_what_cannot_be_deleted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_with(tmp_path, root("a"), root("b"))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # as where nobody may remove the files
    with pytest.raises(OdfError, match=r"no longer in the workspace, but some of their files are still in .*deleted-"):
        workspace.datasets.delete(["a", "b"])
    assert workspace.datasets.all() == []


def test_pipes_are_taken_in_like_files(tmp_path: Path) -> None:
    workspace, pipe = workspace_with(tmp_path / "w", root(merge="{kind: Append}")), tmp_path / "pipe"
    os.mkfifo(pipe)
    record = '{"event_time": "2024-01-01T00:00:00Z", "id": 7, "name": "a"}'
    with subprocess.Popen(["sh", "-c", f"echo '{record}' > {pipe}"]):
        (result,) = workspace.ingest("root", [pipe])
    assert result.num_records == 1
    (result,) = workspace.ingest("root", ["/dev/null"])
    assert result.num_records == 0
    with pytest.raises(UsageError, match="/dev/zero is not a file"):
        list(workspace.ingest("root", ["/dev/zero"]))


def test_no_workspace_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(WorkspaceNotFound) as error:
        Workspace.open(tmp_path)
    assert error.value.exit_code == 2
    assert "odf init" in str(error.value.hint)


def test_a_second_init_changes_nothing(tmp_path: Path) -> None:
    workspace_with(tmp_path, root())
    with pytest.raises(AlreadyExists):
        Workspace.init(tmp_path)
    assert len(Workspace.open(tmp_path).datasets.all()) == 1


def test_a_workspace_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path)
    (workspace.odf / "version").write_text("99\n")
    with pytest.raises(UnsupportedVersion, match="99"):
        Workspace.open(tmp_path)


def test_names_are_compared_without_case_and_ids_work_everywhere(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.Rates"))
    handle = workspace.datasets.handle("COM.example.rates")
    assert workspace.datasets.handle(str(handle.id)) == handle
    assert workspace.datasets.match(["com.%", "%rates"]) == [handle]
    with pytest.raises(DatasetNotFound, match="matches the pattern"):
        workspace.datasets.match(["org.%"])
    with pytest.raises(InvalidValue):
        workspace.datasets.handle("../secrets")


def test_names_are_those_of_now_whoever_has_changed_them(tmp_path: Path) -> None:
    here = workspace_with(tmp_path / "w", root("com.example.a"), root("com.example.b"))
    there = Workspace.open(here.root)
    known = {name: here.storage.get(name).handle.id for name in ("com.example.a", "com.example.b")}
    there.datasets.rename("com.example.a", "com.example.c")
    there.datasets.rename("com.example.b", "com.example.a")
    assert here.storage.get("com.example.a").handle.id == known["com.example.b"]
    assert here.storage.get("com.example.c").handle.id == known["com.example.a"]
    there.datasets.delete(["com.example.c"])
    with pytest.raises(DatasetNotFound):
        here.storage.get("com.example.c")


def test_rename_keeps_the_id_and_what_is_derived_from_it(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), derivative("b", "a"))
    before = workspace.datasets.handle("a").id
    assert workspace.datasets.rename("a", "c").id == before
    with pytest.raises(AlreadyExists):
        workspace.datasets.rename("b", "C")
    feed(workspace, "c", "2 x")
    assert [result.outcome for result in workspace.pull(["b"])] == [PullOutcome.UPDATED]


def test_what_others_are_derived_from_is_not_deleted_by_accident(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), derivative("b", "a"))
    with pytest.raises(UsageError, match="b"):
        workspace.datasets.delete(["a"])
    assert len(workspace.datasets.all()) == 2
    workspace.datasets.delete(["a", "b"])
    assert workspace.datasets.all() == []
    assert list((workspace.odf / "keys").iterdir()) == []
    assert list((workspace.odf / "datasets").iterdir()) == []


def test_of_several_datasets_none_is_deleted_while_somebody_writes_to_one(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), root("b"), root("c"))
    with Workspace.open(tmp_path).storage.get("b").writing(), pytest.raises(DatasetLocked):
        workspace.datasets.delete(["a", "b", "c"])
    assert [str(one.handle.alias) for one in workspace.datasets.all()] == ["a", "b", "c"]


def test_states_are_compared_by_a_key_that_both_have(tmp_path: Path) -> None:
    keyed = root(merge="{kind: Ledger, primaryKey: [key]}").replace(
        "fields:", "fields:\n            - {name: key, type: Int64}"
    )
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    feed(workspace, "root", "1 a", "2 b")
    workspace.add(load_snapshots(keyed, "manifest"), replace=True)
    (tmp_path / "in").write_text('{"event_time":"2024-01-01T00:00:00Z","key":1,"id":1,"name":"a"}\n')
    list(workspace.ingest("root", [tmp_path / "in"]))
    with workspace.compare("root", "3", "head") as compared:
        assert compared.key == ()
        # At the head, the rows without a key are one row: the last of them.
        cells = {"event_time": "2024-01-01T00:00:00Z", "id": 1, "name": "a"}
        assert [(one.change, one.old, one.new) for one in compared] == [
            (Change.ADDED, None, cells | {"key": 1}),
            (Change.REMOVED, cells | {"key": None}, None),
        ]


def test_the_manifest_of_a_dataset_makes_the_same_dataset_again(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "one", root("a"))
    again = Workspace.init(tmp_path / "two")
    again.add([workspace.datasets.snapshot("a")])
    assert again.datasets.snapshot("a") == workspace.datasets.snapshot("a")


def test_tail_takes_the_last_rows_across_slices(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a", "{kind: Append}"))
    for number in range(4):
        feed(workspace, "a", f"{number} x", f"{number} y", day=number + 1)
    assert workspace.tail("a", 3).column("offset").to_pylist() == [5, 6, 7]
    assert workspace.tail("a", 3, skip=2).column("offset").to_pylist() == [3, 4, 5]
    assert workspace.tail("a", 100, skip=7).column("offset").to_pylist() == [0]
    assert workspace.tail("a", 0).num_rows == workspace.tail("a", 5, skip=9).num_rows == 0


@pytest.mark.parametrize("value", [2.5, -1, "3", None])
def test_tail_wants_whole_numbers(value: Any, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a", "{kind: Append}"))
    feed(workspace, "a", "1 x", "2 y")
    with pytest.raises(UsageError, match="num_records must be a whole number, at least 0, not"):
        workspace.tail("a", value)
    with pytest.raises(UsageError, match="skip must be a whole number, at least 0, not"):
        workspace.tail("a", skip=value)


def test_a_text_is_one_name_where_several_may_be_given(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("root"), root("r"))
    assert [result.name for result in workspace.pull("root")] == ["root"]
    assert [str(report.handle) for report in workspace.verify("root")] == ["root"]


def test_one_text_is_one_name_for_every_verb(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "w", *(root(name) for name in ("root", "r", "o", "t")))
    (tmp_path / "1.ndjson").write_text('{"event_time": "2024-01-01T00:00:00Z", "id": 1, "name": "a"}\n')
    assert [result.name for result in workspace.ingest("root", tmp_path / "1.ndjson")] == ["root"]
    assert [result.name for result in workspace.ingest("root", str(tmp_path / "1.ndjson"))] == ["root"]
    datasets, updates, maintenance = workspace.datasets, workspace.updates, workspace.maintenance
    assert [str(one.handle) for one in datasets.survey("root")[0]] == ["root"]
    assert [str(handle) for handle in datasets.match("root")] == ["root"]
    assert [str(one.handle) for one in workspace.sources.all("root")] == ["root"]
    assert [one.name for one in updates.status("root")] == ["root"]
    assert [one.name for one in workspace.plan_pull("root")] == ["root"]
    assert [one.name for one in updates.pull(PullRequest(refs="root"))] == ["root"]  # type: ignore[arg-type]
    assert [one.name for one in maintenance.gc("root")] == ["root"]
    workspace.branches.create("root", ReferenceKind.TAG, "v1")
    pushed = workspace.push("root", to=str(tmp_path / "there"), tags="v1")
    assert [one.name for one in pushed] == ["root", "root tag v1"]
    assert [one.name for one in maintenance.gc_repository(str(tmp_path), "there")] == ["there"]
    assert [str(one.dataset.alias) for one in workspace.remotes.search("", str(tmp_path))[0]] == ["there"]
    exported = workspace.export("root", to=tmp_path / "parts", partition_by="name")
    assert exported.manifest["partitionBy"] == ["name"]
    with workspace.compare("root", "v1", "head", key="id") as compared:
        assert compared.key == ("id",)
    assert list(map(str, datasets.plan_delete("root"))) == ["root"]
    assert list(map(str, datasets.delete("root"))) == ["root"]
    (tmp_path / "x.yaml").write_text(FOLDER)
    assert [str(snapshot.name) for snapshot in workspace.load(str(tmp_path / "x.yaml"))] == ["com.example.folder"]


WRONG_ARGUMENTS: list[Callable[[Workspace], object]] = [
    lambda w: Workspace.open(None),  # type: ignore[arg-type]
    lambda w: w.provenance("root", "0"),  # type: ignore[arg-type]
    lambda w: w.provenance("root", True),
    lambda w: w.provenance("root", 0, depth=""),  # type: ignore[arg-type]
    lambda w: w.provenance("root", 0, column=5),  # type: ignore[arg-type]
    lambda w: w.provenance(None, 0),  # type: ignore[arg-type]
    lambda w: w.branches.diff("root", None),  # type: ignore[arg-type]
    lambda w: w.branches.merge("root", 0),  # type: ignore[arg-type]
    lambda w: w.add(None),  # type: ignore[arg-type]
    lambda w: w.add("m.yaml"),  # type: ignore[arg-type]
    lambda w: w.add(["m.yaml"]),  # type: ignore[list-item]
    lambda w: w.datasets.rename("root", None),  # type: ignore[arg-type]
    lambda w: w.datasets.rename(None, "zz"),  # type: ignore[arg-type]
    lambda w: w.push("root", to=5),  # type: ignore[arg-type]
    lambda w: w.sources.report("root", num_commits=-1),
    lambda w: w.sources.report("root", num_commits=1.5),  # type: ignore[arg-type]
    lambda w: w.maintenance.plan_reset("root", None),  # type: ignore[arg-type]
    lambda w: list(w.maintenance.gc("")),
    lambda w: list(w.maintenance.gc(None)),  # type: ignore[arg-type]
    lambda w: list(w.updates.status("")),
    lambda w: w.sources.all(""),
    lambda w: w.datasets.survey(""),
]


@pytest.mark.parametrize("call", WRONG_ARGUMENTS)
def test_wrong_arguments_are_told_and_change_nothing(call: Callable[[Workspace], object], tmp_path: Path) -> None:
    """An empty name above all: it stands for no dataset, and not for all of them."""
    workspace = workspace_with(tmp_path, root())
    feed(workspace, "root", "1 a")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as error:
        call(workspace)
    assert error.value.hint
    assert sorted(tmp_path.rglob("*")) == before


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    feed(workspace, "root", "1 a", "2 b")
    assert workspace.tail("root", np.int64(1)).num_rows == 1
    assert workspace.maintenance.plan_reset("root", 1).new_head


def test_sql_sees_datasets_under_their_names(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.a"))
    feed(workspace, "com.example.a", "1 x", "2 y")
    table = workspace.sql('select max(id) as most from "com.example.a"', engine="datafusion")
    assert table.to_pylist() == [{"most": 2}]


def test_the_engine_s_version_is_recorded_with_the_first_run_only(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), derivative("b", "a"))
    for day in (1, 2):
        feed(workspace, "a", f"{day + 1} x", day=day)
        assert [result.error for result in workspace.pull(["b"])] == [None]
    events = [type(hashed.block.event).__name__ for hashed in workspace.datasets.log("b")][::-1]
    assert events == ["Seed", "SetTransform", "SetTransform", "SetDataSchema", "ExecuteTransform", "ExecuteTransform"]
    transform = workspace.datasets.state("b").set_transform
    assert transform is not None
    assert str(transform.transform.version).startswith("odfpy-datafusion/")
    assert [report.ok for report in workspace.verify(all=True)] == [True, True]


def test_pushing_needs_a_place_which_is_then_remembered(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "w", root("a"))
    feed(workspace, "a", "1 x")
    (result,) = workspace.push(["a"])
    assert isinstance(result.error, UsageError)
    (result,) = workspace.push(["a"], to="nowhere")
    assert isinstance(result.error, RepositoryNotFound)
    workspace.remotes.repositories.add("mirror", str(tmp_path / "mirror"))
    assert [result.outcome for result in workspace.push(["a"], to="mirror")] == [PullOutcome.UPDATED]
    assert [result.outcome for result in workspace.push(["a"])] == [PullOutcome.UP_TO_DATE]
    elsewhere = Workspace.init(tmp_path / "elsewhere")
    elsewhere.remotes.repositories.add("mirror", str(tmp_path / "mirror"))
    assert [result.error for result in elsewhere.pull(["mirror/a"], as_name="b")] == [None]
    assert rows(elsewhere, "b") == ["+A 1 x"]


def test_settings_of_the_workspace_win_over_folders_user_and_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    root_folder = tmp_path / "above" / "workspace"
    Workspace.init(root_folder)
    config = Config.load(root_folder)
    assert config.get("engine.idleTimeout") == 600
    config.set("engine.idleTimeout", "1", for_user=True)
    assert Config.load(root_folder).get("engine.idleTimeout") == 1
    (tmp_path / "above" / ".odfconfig.yaml").write_text("engine:\n  idleTimeout: 2\n")
    assert Config.load(root_folder).get("engine.idleTimeout") == 2
    config.set("ENGINE.idletimeout", "3")
    assert Config.load(root_folder).get("engine.idleTimeout") == 3
    config.set("engine.idleTimeout", None)
    assert Config.load(root_folder).get("engine.idleTimeout") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [("engine: [", "not YAML"), ("engin: {idleTimeout: 1}", "engin"), ("engine: {idleTimeout: x}", "whole")],
)
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str, words: str) -> None:
    workspace = Workspace.init(tmp_path)
    (workspace.odf / "config.yaml").write_text(text)
    with pytest.raises(MalformedManifest, match=words) as error:
        workspace.config.get("engine.memory")
    assert "config.yaml" in error.value.message


def test_an_unknown_setting_comes_with_a_suggestion(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path)
    with pytest.raises(UsageError) as error:
        workspace.config.get("engine.idleTimout")
    assert str(error.value.hint).startswith("Did you mean engine.idleTimeout")


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path: Path) -> None:
    dataset = workspace_with(tmp_path, root()).storage.get("root")
    left = dataset.folder / "data" / ".tmp-left"
    left.parent.mkdir(exist_ok=True)
    with dataset.writing():
        pass
    left.write_bytes(b"half")
    with dataset.writing():
        assert left.exists(), "the last writer has done its work, so there is nothing to look for"
    program = (
        "import os, sys; from odfpy import Workspace\n"
        "with Workspace.open('.').storage.get('root').writing(): os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    with dataset.writing():
        assert not left.exists()


@pytest.mark.parametrize("verb", ["pull", "ingest", "push", "verify"])
def test_who_asks_for_no_results_is_warned(tmp_path: Path, verb: str) -> None:
    workspace = workspace_with(tmp_path, root())
    with pytest.warns(RuntimeWarning, match=rf"{verb}\(\) did nothing, since its results were not requested"):
        getattr(workspace, verb)("root")


def test_who_asks_for_some_results_is_not_warned(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    assert next(workspace.verify("root")).ok
    for report in workspace.verify("root"):
        assert report.ok
        break
