"""Rows come in only together with the objects that they link to."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.linked import (
    APPEND,
    BARE,
    add,
    files_workspace,
    ingest,
    name_of,
    objects_in,
    put,
    row,
    summary,
)

from odfpy.chain.link_summary import LinkedObjects
from odfpy.chain.links.checks import LinkRefused
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import SchemaError


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return files_workspace(tmp_path / "workspace")


def test_blocks_say_how_many_objects_rows_link_to_and_how_large_these_are(workspace: Workspace) -> None:
    add(workspace, (1, b"one"), (2, b"second"), (3, b"one"))
    assert summary(workspace) == LinkedObjects(3, 3 + 6 + 3)
    event = next(workspace.storage.get("files").chain.iter_blocks()).block.event
    assert event.extra.entries == '{"opendatafabric.org/linkedObjects":{"numObjectsNaive":3,"sizeNaive":12}}'


def test_a_correction_counts_what_it_brings_and_not_what_it_takes_back(workspace: Workspace) -> None:
    add(workspace, (1, b"one"))
    add(workspace, (1, b"other"))
    assert summary(workspace) == LinkedObjects(2, 3 + 5)


def test_rows_without_a_link_are_no_objects(workspace: Workspace) -> None:
    ingest(workspace, [row(1, None)])
    assert summary(workspace) == LinkedObjects()
    assert next(workspace.storage.get("files").chain.iter_blocks()).block.event.extra is None


def test_sizes_are_those_of_the_files_where_no_column_says_them(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace", extra=BARE)
    put(workspace, b"four")
    ingest(workspace, [row(1, b"four", size=999)])
    assert summary(workspace) == LinkedObjects(1, 4)


def test_a_row_without_its_object_is_refused_and_named(workspace: Workspace) -> None:
    add(workspace, (1, b"one"))
    head = workspace.datasets.state("files").head
    put(workspace, b"two")
    with pytest.raises(LinkRefused, match="Row 2, column 'content'") as caught:
        ingest(workspace, [row(2, b"two"), row(3, b"three")])
    assert str(name_of(b"three")) in caught.value.message
    assert caught.value.hint is not None
    assert Workspace.open(workspace.root).datasets.state("files").head == head


def test_a_row_that_says_another_size_is_refused(workspace: Workspace) -> None:
    put(workspace, b"one")
    with pytest.raises(LinkRefused, match="of 3 bytes, but its column 'size' says 4"):
        ingest(workspace, [row(1, b"one", size=4)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "../../etc/passwd",
        "f1e20" + "0" * 63,
        "F1E20" + "A" * 64,
        "f1e20" + "g" * 64,
        "f1220" + "a" * 64,
        "x" * 10**6,
    ],
)
def test_a_text_that_is_no_hash_in_its_one_form_is_refused(workspace: Workspace, text: str) -> None:
    with pytest.raises(LinkRefused, match="Row 0, column 'content': is not the hash of an object") as caught:
        ingest(workspace, [row(1, None, content=text)])
    assert len(caught.value.message) < 300


def test_a_row_that_says_that_bytes_were_let_go_needs_none(workspace: Workspace) -> None:
    ingest(workspace, [row(1, b"gone", removed="2024-02-01T00:00:00Z")])
    assert summary(workspace) == LinkedObjects(1, 4)
    assert objects_in(workspace) == set()


def test_a_retraction_needs_no_object(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace")
    add(workspace, (1, b"one"))
    workspace.storage.get("files").layout.data.delete(name_of(b"one"))
    add(workspace, (1, b"other"))
    assert summary(workspace) == LinkedObjects(2, 8)


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ("{opendatafabric.org/type: {kind: ObjectLink}}", "linkType"),
        ("{opendatafabric.org/type: {kind: ObjectLink, linkType: {kind: Cid}}}", "linkType"),
        (BARE[:-1] + ", org.odfpy/sizeColumn: nothing}", "there is no such column"),
        (BARE[:-1] + ", org.odfpy/sizeColumn: what}", "not an integer"),
        (BARE[:-1] + ", org.odfpy/removedColumn: size}", "not a timestamp"),
        (BARE[:-1] + ", org.odfpy/removedColumn: event_time}", "has no nulls"),
    ],
)
def test_a_column_that_cannot_link_as_it_says_takes_in_no_rows(tmp_path: Path, extra: str, problem: str) -> None:
    workspace = files_workspace(tmp_path / "workspace", extra=extra)
    with pytest.raises(SchemaError, match=problem):
        ingest(workspace, [row(1, None)])


def test_other_kinds_of_types_are_no_links(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace", merge=APPEND, extra="{opendatafabric.org/type: {kind: Did}}")
    ingest(workspace, [row(1, None, content="did:odf:anything")])
    assert workspace.datasets.state("files").num_records == 1
