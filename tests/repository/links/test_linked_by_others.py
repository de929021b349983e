"""Datasets with linked objects as others read and write them: the client `kamu`, and blocks as the reference has them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import kamu
from support.chains.linked import UPSERT, add, commit_unchecked, files_workspace, name_of, objects_in, put, summary
from support.servers.flight import serving_flight

from odfpy.chain.events import AddData
from odfpy.chain.link_summary import LinkedObjects
from odfpy.coordinator.workspace import Workspace
from odfpy.data.attributes import ExtraAttributes


def test_kamu_reads_links_as_text(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace")
    add(workspace, (1, b"one"), (2, b"two"))
    with serving_flight(workspace) as served, closing(kamu.connect(served.url, token=served.token)) as client:
        found = client.query('select id, content, size from "files" order by id')
    assert found.content.tolist() == [str(name_of(b"one")), str(name_of(b"two"))]
    assert found["size"].tolist() == [3, 3]


def test_a_chain_that_another_program_went_on_with_goes_on_here(tmp_path: Path) -> None:
    """It has no summary, as of a program that does not know of links; the object is there."""
    workspace = files_workspace(tmp_path / "workspace", merge=UPSERT)
    add(workspace, (1, b"one"))
    put(workspace, b"of another program")
    commit_unchecked(workspace, [(2, str(name_of(b"of another program")), 18)])
    add(workspace, (3, b"three"), day=3)
    assert summary(workspace) == LinkedObjects(2, 8)
    assert [report.error for report in workspace.maintenance.gc(["files"])] == [None]
    assert objects_in(workspace) == {name_of(data) for data in (b"one", b"of another program", b"three")}
    (report,) = workspace.verify(["files"])
    assert (report.ok, report.linked and report.linked.here) == (True, 3)


def test_summaries_of_the_reference_are_read_in_any_order_of_keys() -> None:
    text = '{"opendatafabric.org/linkedObjects":{"sizeNaive":100500,"numObjectsNaive":1123}}'
    event = AddData(extra=ExtraAttributes(text))
    assert LinkedObjects.of(event) == LinkedObjects(1123, 100500)
    for odd in ('{"numObjectsNaive":-1,"sizeNaive":0}', '{"numObjectsNaive":"1","sizeNaive":0}', "[]", "7", "null"):
        extra = ExtraAttributes(f'{{"opendatafabric.org/linkedObjects":{odd}}}')
        assert LinkedObjects.of(replace(event, extra=extra)) == LinkedObjects()


def test_old_datasets_get_no_attributes(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace", extra="{a: 1}")
    add(workspace, (1, b"one"))
    blocks = Workspace.open(workspace.root).storage.get("files").chain.iter_blocks()
    assert [one.block.event.extra for one in blocks if isinstance(one.block.event, AddData)] == [None]
