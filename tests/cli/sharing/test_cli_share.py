"""`odf share add` of tables that are no datasets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.conftest import Odf
from deltalake import write_deltalake

from odfpy.coordinator.workspace import Workspace

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Workspace.init(tmp_path / "workspace")
    monkeypatch.chdir(tmp_path / "workspace")
    return tmp_path / "workspace"


def test_a_folder_is_kept_by_its_absolute_path(odf: Odf, workspace: Path) -> None:
    (workspace / "files").mkdir()
    pq.write_table(ROWS, workspace / "files/a.parquet")
    write_deltalake(workspace / "delta", ROWS)
    assert odf("share", "add", "sales").code == 0
    assert odf("share", "add", "sales.eu.files", "--parquet", "files").code == 0
    assert odf("share", "add", "sales.eu.people", "--delta", "delta").code == 0
    shown = odf("share", "show", "sales", "-o", "json").json
    assert [(one["table"], one["kind"], one["source"], one["shown"]) for one in shown] == [
        ("sales.eu.files", "parquet", str(workspace / "files"), None),
        ("sales.eu.people", "delta", str(workspace / "delta"), None),
    ]


def test_a_table_that_cannot_be_opened_is_not_added(odf: Odf, workspace: Path) -> None:
    odf("share", "add", "sales")
    (workspace / "files").mkdir()
    (workspace / "files/a.parquet").write_bytes(b"something else")
    for kind, place, says in (
        ("--parquet", "files", "a.parquet"),
        ("--parquet", "nothing", "Cannot open the folder"),
        ("--delta", "files", "is no Delta table"),
        ("--iceberg", "tests:eu.nothing", "cannot be read"),
    ):
        outcome = odf("share", "add", "sales.eu.people", kind, place)
        assert outcome.code != 0
        assert says in outcome.says
    assert odf("share", "show", "sales", "-o", "json").json == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("sales.eu.people",),
        ("sales.eu", "--parquet", "files"),
        ("sales.eu.people", "rates", "--parquet", "files"),
        ("sales.eu.people", "--delta", "files", "--parquet", "files"),
        ("sales.eu.people", "--parquet", "files", "--changelog"),
        ("sales.eu.people", "--parquet", "files", "--at", "v1"),
    ],
)
def test_what_does_not_go_together(odf: Odf, workspace: Path, arguments: tuple[str, ...]) -> None:
    odf("share", "add", "sales")
    outcome = odf("share", "add", *arguments)
    assert outcome.code == 2
    assert "hint: " in outcome.err
