"""Invalid arguments are errors of ours, wherever they are given; those of other libraries count."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from support.chains.connecting import RATES
from support.chains.workspaces import workspace_with

import odfpy
from odfpy.chain.rules import WatermarkWentBack
from odfpy.client.connection import Connection
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue, UsageError, WorkspaceNotFound

ODD_COUNTS = (-1, 1.5, "2", b"2", float("nan"), [1])


@pytest.mark.parametrize("count", ODD_COUNTS, ids=repr)
def test_counts_are_whole_numbers(workspace: Workspace, here: Connection, tmp_path: Path, count: Any) -> None:
    for ask in (
        lambda: workspace.sql("select 1", engine="datafusion", limit=count),
        lambda: here.sql("select 1", limit=count),
        lambda: here.sql("select 1").head(count),
        lambda: workspace.export(sql="select 1", engine="datafusion", to=tmp_path / "there", rows_per_file=count),
    ):
        with pytest.raises(UsageError, match="must be a whole number, at least"):
            ask()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("to_pandas", r"'to_pandas', but its rows have: current\(\).to_pandas\(\), changelog\(\)"),
        ("columns", "'columns'; it has schema.names$"),
        ("head", r"'head'; it has current\(\) for the current state, tail\(5\)"),
        ("nothing", "'nothing'$"),
    ],
)
def test_names_of_data_frames_lead_to_those_of_a_dataset(here: Connection, name: str, says: str) -> None:
    with pytest.raises(AttributeError, match=f"A dataset has no {says}"):
        getattr(here[RATES], name)
    assert not hasattr(here[RATES], name)


def test_no_file_has_no_rows(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="rows_per_file must be a whole number, at least 1, not 0"):
        workspace.export(sql="select 1", engine="datafusion", to=tmp_path / "there", rows_per_file=0)


def test_counts_of_numpy_count(workspace: Workspace) -> None:
    assert workspace.sql("select 1", engine="datafusion", limit=np.int64(1)).num_rows == 1


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), 1e300, "5"], ids=repr)
def test_time_limits_are_seconds(here: Connection, seconds: Any) -> None:
    with pytest.raises(UsageError, match=r"timeout must be more than 0 s and at most \d+ s, not "):
        here.sql("select 1", timeout=seconds)


@pytest.mark.parametrize(
    "ask",
    [
        lambda workspace: list(workspace.pull(None)),
        lambda workspace: list(workspace.verify([None])),
        lambda workspace: list(workspace.verify(b"rates")),
        lambda workspace: workspace.tail(None),
        lambda workspace: workspace.tail(5),
        lambda workspace: workspace.sql(None),
        lambda workspace: workspace.sql("select 1", engine=5),
        lambda workspace: workspace.export("rates", to=None),
        lambda workspace: odfpy.connect(workspace)[0],
        lambda workspace: odfpy.connect(workspace).sql("select ?", None),
        lambda workspace: odfpy.connect(workspace).sql("select ?", 5),
        lambda workspace: odfpy.connect(workspace, engine=5),
        lambda workspace: odfpy.connect(None),
    ],
)
def test_names_are_texts(workspace: Workspace, ask: Callable[[Workspace], object]) -> None:
    with pytest.raises(UsageError):
        ask(workspace)


@pytest.mark.parametrize("folder", ["no/such/folder", "a.csv", "a\0b", "x" * 5_000])
def test_workspace_is_in_a_folder_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """A misspelt folder in a workspace is not taken for the workspace: something might be deleted there."""
    Workspace.init(tmp_path)
    (tmp_path / "a.csv").touch()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkspaceNotFound, match="There is no folder"):
        Workspace.open(folder)
    (tmp_path / "inside").mkdir()
    assert Workspace.open("inside").root == tmp_path


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, Decimal(2**63)),
        (-(2**63) - 1, Decimal(-(2**63) - 1)),
        (10**37 + 1, Decimal(10**37 + 1)),
        (pd.NaT, None),
        (pd.Series([-1]).iloc[0], -1),
        (pd.Series([2**64 - 1]).iloc[0], Decimal(2**64 - 1)),
    ],
    ids=repr,
)
def test_parameters_keep_their_value(here: Connection, value: Any, answer: object) -> None:
    assert here.sql("select ? as a", [value]).to_arrow().to_pylist() == [{"a": answer}]


NO_TIMES = """
kind: DatasetSnapshot
version: 1
content:
  name: r
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [id BIGINT]}
      merge: {kind: Append}
"""


def times_of(year: int) -> tuple[Any, ...]:
    """One time as programs have it."""
    return (
        f"{year}-01-01",
        date(year, 1, 1),
        datetime(year, 1, 1, tzinfo=timezone.utc),
        pd.Timestamp(f"{year}-01-01", tz="UTC"),
        Timestamp.parse(f"{year}-01-01"),
    )


@pytest.mark.parametrize("time", times_of(2200), ids=repr)
def test_times_are_taken_as_programs_have_them(workspace: Workspace, tmp_path: Path, time: Any) -> None:
    with workspace.compare(RATES, time, "head") as compared:
        assert list(compared) == []
    there = workspace.export(RATES, to=tmp_path / "there.csv", as_of=time, as_at=time)
    assert there.num_rows == workspace.sql(f'select * from odf_current("{RATES}")', engine="datafusion").num_rows


@pytest.mark.parametrize("time", times_of(2020), ids=repr)
def test_times_are_taken_by_what_is_written(tmp_path: Path, time: Any) -> None:
    workspace = workspace_with(tmp_path / "w", NO_TIMES)
    file = tmp_path / "rows.ndjson"
    file.write_text('{"id": 1}\n')
    (result,) = workspace.ingest("r", file, event_time=time)
    assert result.error is None
    expected = Timestamp.of(time)
    assert Timestamp.of(workspace.tail("r").column("event_time").to_pylist()[0]) == expected
    with pytest.raises(WatermarkWentBack):
        workspace.set_watermark("r", date(1999, 1, 1))


@pytest.mark.parametrize("time", [5.0, b"2024-01-01", [], True], ids=repr)
def test_what_is_no_time_is_told(workspace: Workspace, tmp_path: Path, time: Any) -> None:
    for ask in (
        lambda: workspace.compare(RATES, time, "head"),
        lambda: workspace.export(RATES, to=tmp_path / "there.csv", as_of=time),
        lambda: list(workspace.ingest(RATES, tmp_path / "rows", event_time=time)),
        lambda: workspace.set_watermark(RATES, time),
    ):
        with pytest.raises(InvalidValue, match="Not a time: a value of type"):
            ask()


def test_numbers_that_no_type_holds(here: Connection) -> None:
    with pytest.raises(UsageError, match="38 digits at most, not 39"):
        here.sql("select ? as a", [10**38])


def test_datasets_are_in_a_connection_and_equal_themselves(connection: Connection) -> None:
    first, *others = connection
    assert first in connection
    assert first.name in connection
    assert first == connection[first.name]
    assert len({first, connection[first.name], *others}) == 1 + len(others)
    assert "no.such.dataset" not in connection
    assert "not a name" not in connection
    assert 5 not in connection
    assert first != first.name
