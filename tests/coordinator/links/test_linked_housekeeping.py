"""Objects that rows link to are not garbage, whatever is done to the history; the rest is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from support.chains.linked import (
    APPEND,
    add,
    files_workspace,
    ingest,
    name_of,
    objects_in,
    put,
    row,
    summary,
)

from odfpy.chain.events import AddData, SetDataSchema
from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.maintenance.gc import GcReport
from odfpy.coordinator.maintenance.reachable import Garbage
from odfpy.coordinator.maintenance.repository_gc import RepositoryGarbage
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue, OdfError

GONE = "2024-03-01T00:00:00Z"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Three rows, each with an object; the second was corrected and links to another one."""
    made = files_workspace(tmp_path / "workspace")
    add(made, (1, b"one"), (2, b"two"))
    add(made, (3, b"three"))
    add(made, (2, b"two corrected"), day=2)
    return made


ALL = {name_of(data) for data in (b"one", b"two", b"three", b"two corrected")}


def collected(workspace: Workspace, may_remove: object = None) -> GcReport:
    (report,) = workspace.maintenance.gc(["files"], may_remove=may_remove)  # type: ignore[arg-type]
    return report


def everything(_: StoredDataset, names: Sequence[Multihash]) -> Collection[Multihash]:
    return names


def test_linked_objects_stay_also_those_of_rows_that_were_corrected(workspace: Workspace) -> None:
    (stray,) = put(workspace, b"nobody links to it")
    report = collected(workspace)
    assert (report.error, report.counts) == (None, {Garbage.OBJECT: 1})
    assert objects_in(workspace) == ALL
    assert stray not in ALL


def test_what_only_a_branch_or_a_tag_links_to_stays(workspace: Workspace) -> None:
    put(workspace, b"staged")
    file = workspace.root / "staged.ndjson"
    file.write_text(json.dumps(row(9, b"staged")), encoding="utf-8")
    list(workspace.ingest("files", [file], branch="staging"))
    workspace.branches.create("files", ReferenceKind.TAG, "before")
    workspace.maintenance.reset("files", "2")
    assert collected(workspace).counts == {}
    assert objects_in(workspace) >= ALL | {name_of(b"staged")}
    assert all(report.ok for report in workspace.verify(["files"]))


def test_what_a_reset_leaves_goes_unless_something_else_links_to_it(workspace: Workspace) -> None:
    add(workspace, (4, b"one"), (5, b"five"))
    workspace.maintenance.reset("files", str(workspace.datasets.state("files").sequence_number - 1))
    collected(workspace)
    assert objects_in(workspace) == ALL


def test_a_compaction_adds_up_summaries_and_keeps_links(workspace: Workspace) -> None:
    before = summary(workspace)
    result = workspace.maintenance.compact("files")
    assert result.slices == (3, 1)
    assert summary(workspace) == before == LinkedObjects(4, 3 + 3 + 5 + 13)
    collected(workspace)
    assert objects_in(workspace) == ALL
    assert all(report.ok for report in workspace.verify(["files"]))


def test_a_compaction_leaves_attributes_alone_that_it_does_not_know(workspace: Workspace) -> None:
    add(workspace, (6, b"six"))
    with workspace.storage.get("files").writing() as dataset:
        event = AddData(
            prev_offset=dataset.state.last_offset,
            new_watermark=Timestamp.parse("2024-05-01T00:00:00Z"),
            extra=ExtraAttributes.of(
                {"org.example/a": 1, "opendatafabric.org/linkedObjects": {"numObjectsNaive": 7, "sizeNaive": 7}}
            ),
        )
        commit_events(dataset, dataset.state, [event], commit_time(dataset.state))
    workspace.maintenance.compact("files")
    events = [block.block.event for block in workspace.storage.get("files").chain.iter_blocks()]
    assert event.extra in [one.extra for one in events if isinstance(one, AddData)]


def test_dropping_all_rows_lets_their_objects_go(workspace: Workspace) -> None:
    workspace.maintenance.compact("files", CompactOptions(keep_metadata_only=True))
    collected(workspace)
    assert objects_in(workspace) == set()


def test_a_slice_that_cannot_be_read_keeps_everything(workspace: Workspace) -> None:
    (stray,) = put(workspace, b"stray")
    dataset = workspace.storage.get("files")
    slices = [
        block.block.event.new_data for block in dataset.chain.iter_blocks() if isinstance(block.block.event, AddData)
    ]
    dataset.layout.data.delete(slices[-1].physical_hash)
    report = collected(workspace)
    assert "unneeded files cannot be identified" in report.error.message
    assert ALL | {stray} <= set(dataset.layout.data)


def test_links_that_cannot_be_read_here_keep_everything(workspace: Workspace) -> None:
    (stray,) = put(workspace, b"stray")
    with workspace.storage.get("files").writing() as dataset:
        link = ExtraAttributes.of({"opendatafabric.org/type": {"kind": "ObjectLink", "linkType": {"kind": "Cid"}}})
        old = dataset.state.schema
        fields = tuple(DataField(f.name, f.type, link) if f.name == "what" else f for f in old.fields)
        commit_events(dataset, dataset.state, [SetDataSchema(schema=DataSchema(fields))], commit_time(dataset.state))
    assert collected(workspace).counts == {}
    assert stray in objects_in(workspace)


def test_a_column_that_was_once_a_link_keeps_its_objects(workspace: Workspace) -> None:
    with workspace.storage.get("files").writing() as dataset:
        fields = tuple(DataField(field.name, field.type) for field in dataset.state.schema.fields)
        commit_events(dataset, dataset.state, [SetDataSchema(schema=DataSchema(fields))], commit_time(dataset.state))
    collected(workspace)
    assert objects_in(workspace) == ALL


@pytest.mark.parametrize("merge", [APPEND])
def test_the_name_in_an_unusual_base_keeps_the_object(tmp_path: Path, merge: str) -> None:
    workspace = files_workspace(tmp_path / "other", merge=merge, extra="{a: 1}")
    (name,) = put(workspace, b"object")
    ingest(workspace, [row(1, None, content=str(name).upper())])
    with workspace.storage.get("files").writing() as dataset:
        link = ExtraAttributes.of(
            {"opendatafabric.org/type": {"kind": "ObjectLink", "linkType": {"kind": "Multihash"}}}
        )
        fields = tuple(
            DataField(f.name, f.type, link) if f.name == "content" else f for f in dataset.state.schema.fields
        )
        commit_events(dataset, dataset.state, [SetDataSchema(schema=DataSchema(fields))], commit_time(dataset.state))
    collected(workspace)
    assert objects_in(workspace) == {name}


# --- Let go, as recorded ---------------------------------------------------------------------------------------------


def test_what_rows_let_go_goes_when_it_may(workspace: Workspace) -> None:
    add(workspace, (1, b"one"), day=3, removed=GONE)
    assert collected(workspace).counts == {}, "nobody allows for it"
    assert collected(workspace, lambda _dataset, _names: ()).counts == {}
    report = collected(workspace, everything)
    # The object of row 2 before its correction is needed by no current row, either.
    assert report.counts == {Garbage.RELEASED: 2}
    assert objects_in(workspace) == ALL - {name_of(b"one"), name_of(b"two")}


def test_what_another_row_still_has_stays(workspace: Workspace) -> None:
    add(workspace, (7, b"one"))
    add(workspace, (1, b"one"), day=3, removed=GONE)
    collected(workspace, everything)
    assert name_of(b"one") in objects_in(workspace)


def test_what_a_tag_still_has_stays(workspace: Workspace) -> None:
    workspace.branches.create("files", ReferenceKind.TAG, "kept")
    add(workspace, (1, b"one"), day=3, removed=GONE)
    collected(workspace, everything)
    assert objects_in(workspace) == ALL - {name_of(b"two")}


def test_only_what_was_asked_for_goes(workspace: Workspace) -> None:
    (stray,) = put(workspace, b"three with a row of its own")
    add(workspace, (8, b"three with a row of its own"))
    collected(workspace, lambda _dataset, _names: [stray, name_of(b"three"), Multihash.of(b"never heard of")])
    assert objects_in(workspace) == ALL | {stray}


def test_when_nobody_knows_whether_it_may_nothing_goes(workspace: Workspace) -> None:
    add(workspace, (1, b"one"), day=3, removed=GONE)
    put(workspace, b"stray")

    def unknown(_: StoredDataset, __: Sequence[Multihash]) -> Collection[Multihash]:
        raise InvalidValue("nobody knows")

    assert isinstance(collected(workspace, unknown).error, OdfError)
    assert name_of(b"stray") in objects_in(workspace)


# --- In other places -------------------------------------------------------------------------------------------------


def test_a_repository_keeps_linked_objects(workspace: Workspace, tmp_path: Path) -> None:
    place = tmp_path / "place" / "files"
    shutil.copytree(workspace.storage.get("files").folder, place)
    (place / "data" / str(Multihash.of(b"stray"))).write_bytes(b"stray")
    (report,) = RepositoryGarbage(str(tmp_path / "place"), Duration.parse("0s")).collect()
    assert (report.error, [item.name for item in report.found]) == (None, [Multihash.of(b"stray")])
    assert {name_of(b"one"), name_of(b"two corrected")} <= {Multihash.parse(p.name) for p in (place / "data").iterdir()}
