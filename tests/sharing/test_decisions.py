"""Who may read what, held to a plain model: cell by cell, one grant has to have both row and column."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.decisions import ALL, CallerAccess, View
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.files.maker import FileMaker
from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.files.visible_rows import has_visible_row, num_visible_rows
from odfpy.sharing.model import Grant, SharedTable, SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.contract import ChangeKind, TableChange, TableFile, TableVersion

TABLE = SharedTable("1", "2", SharePath("sales", "eu", "orders"), TableSource(SourceKind.DATASET, "x"))
NAMES = ["a", "b", "c"]
CONDITIONS = {
    None: lambda row: True,
    "a > 1": lambda row: row["a"] is not None and row["a"] > 1,
    "b = 'x'": lambda row: row["b"] == "x",
    "a IS NULL OR b <> 'x'": lambda row: row["a"] is None or (row["b"] is not None and row["b"] != "x"),
    "b = recipient('letter')": lambda row: row["b"] == "y",
    "b = recipient('none')": lambda row: False,
    "recipient('letter') = 'y'": lambda row: True,
    "CAST(b AS INT) > 1 OR a > 2": lambda row: row["a"] is not None and row["a"] > 2,
    "CAST(CAST(b AS INT) AS BIGINT) > 1 OR a > 2": lambda row: row["a"] is not None and row["a"] > 2,
    "NOT CAST(b AS BOOLEAN)": lambda row: row["b"] == "n",
    "missing IS NULL OR a > 1": lambda row: False,  # shows nothing of a table without that column
}
PATHS = [
    SharePath("SALES"), SharePath("sales", "EU"), SharePath("Sales", "eu", "Orders"),
    SharePath("sales", "us"), SharePath("other"), SharePath("sales", "eu", "order"),
]  # fmt: skip
COVERING = PATHS[:3]
GRANTS = st.builds(
    Grant,
    st.integers(1, 9),
    st.just("acme"),
    st.sampled_from(PATHS),
    st.none() | st.lists(st.sampled_from(["A", "b", "c", "missing"]), min_size=1, max_size=3).map(tuple),
    st.sampled_from(list(CONDITIONS)),
)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 3), "b": st.none() | st.sampled_from(["x", "y", "n"]), "c": st.integers(0, 9)}
    ),
    max_size=8,
)
SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())])
VERSION = TableVersion(1, Timestamp(0))


def expected(grants: list[Grant], rows: list[dict]) -> tuple[list[str], list[dict]] | None:
    """Columns and rows that a plain model lets through, None for a table that is hidden."""
    good = [grant for grant in grants if grant.path in COVERING]
    if not good:
        return None
    good = [grant for grant in good if "missing" not in (grant.rows or "")]
    has = {grant.id: {name for name in NAMES if _has(grant, name)} for grant in good}
    columns = [name for name in NAMES if any(_has(grant, name) for grant in good)]
    del has
    shown = []
    for row in rows:
        cells = {name: [g for g in good if _has(g, name) and CONDITIONS[g.rows](row)] for name in columns}
        seen_by = [g for g in good if CONDITIONS[g.rows](row) and any(_has(g, name) for name in NAMES)]
        if seen_by:
            shown.append({name: row[name] if cells[name] else None for name in columns})
    return columns, shown


def _has(grant: Grant, name: str) -> bool:
    return grant.columns is None or name in {column.lower() for column in grant.columns}


def of_file(rows: list[dict], folder: str, schema: pa.Schema = SCHEMA) -> TableFile:
    path = Path(folder) / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=3)
    return TableFile(str(rows), path.stat().st_size, VERSION, path)


def made(view: View, rows: list[dict], change: TableChange | None = None, lacking: str = "") -> list[dict]:
    """The rows of the file that somebody with a view gets; the file may lack a column of the table."""
    stored = SCHEMA if change is None else SCHEMA.append(pa.field("op", pa.int32()))
    with tempfile.TemporaryDirectory() as folder:
        file = of_file(rows, folder, pa.schema([field for field in stored if field.name != lacking]))
        columns = shared_schema(pa.schema([SCHEMA.field(name) for name in view.columns(NAMES)]))
        served = FileMaker(Path(folder) / "made", 10**9).served(file, columns, view, change)
        if served is None:
            return []
        assert served.path is not None
        names = [*columns.names, *(["_change_type"] if change else [])]
        return [{name: row.get(name) for name in names} for row in pq.read_table(served.path).to_pylist()]


@given(grants=st.lists(GRANTS, max_size=4), rows=ROWS)
def test_cells_show_that_one_grant_has(grants: list[Grant], rows: list[dict]) -> None:
    view = CallerAccess(grants, {"letter": "y"}).view(TABLE)
    wanted = expected(grants, rows)
    if wanted is None:
        assert view is None
        return
    assert view is not None
    columns, shown = wanted
    view = view.fitted(NAMES)
    if view is None:
        assert shown == []
        return
    assert view.columns(NAMES) == columns
    assert made(view, rows) == shown
    with tempfile.TemporaryDirectory() as folder:
        file = of_file(rows, folder)
        assert num_visible_rows(file, view) == len(shown)
        if not view.has_all_rows:
            assert has_visible_row(file, view) == bool(shown)
        else:
            assert len(shown) == len(rows)


def test_a_condition_that_cannot_be_evaluated_hides_all_and_tells_no_value() -> None:
    view = CallerAccess([Grant(1, "acme", SharePath("sales"), None, "b > 1")]).view(TABLE)
    assert view is not None
    with pytest.raises(CannotShare, match="fails for one of them") as error:
        made(view, [{"a": 1, "b": "topsecret", "c": 1}])
    assert "topsecret" not in str(error.value)


@given(grants=st.lists(GRANTS, min_size=1, max_size=4), rows=ROWS, lacking=st.sampled_from(["a", "b"]))
def test_a_column_that_older_files_lack_is_null_there(grants: list[Grant], rows: list[dict], lacking: str) -> None:
    view = CallerAccess(grants, {"letter": "y"}).view(TABLE)
    view = None if view is None else view.fitted(NAMES)
    if view is None:
        return
    older = [{name: value for name, value in row.items() if name != lacking} for row in rows]
    shown = made(view, [{**row, lacking: None} for row in rows])
    assert made(view, older, lacking=lacking) == shown
    with tempfile.TemporaryDirectory() as folder:
        file = of_file(older, folder, pa.schema([field for field in SCHEMA if field.name != lacking]))
        assert num_visible_rows(file, view) == len(shown)
        assert has_visible_row(file, view) == (bool(shown) or view.has_all_rows)


def test_a_grant_that_does_not_fit_a_table_leaves_the_others_in_force() -> None:
    """A grant on a share is one on tables that lack its columns, too."""
    grants = [
        Grant(1, "acme", SharePath("sales"), None, "region = 'EU'"),
        Grant(2, "acme", SharePath("sales", "eu", "orders"), ("a",), "b = 'x'"),
    ]
    view = CallerAccess(grants).view(TABLE)
    assert view is not None
    fitted = view.fitted(NAMES)
    assert fitted is not None
    assert made(fitted, [{"a": 1, "b": "x", "c": 1}, {"a": 2, "b": "y", "c": 2}]) == [{"a": 1}]
    alone = CallerAccess(grants[:1]).view(TABLE)
    assert alone is not None
    assert alone.fitted(NAMES) is None
    assert alone.fitted([*NAMES, "REGION"]) == alone


@given(grants=st.lists(GRANTS, max_size=4), more=GRANTS, rows=ROWS)
def test_another_grant_never_hides_anything(grants: list[Grant], more: Grant, rows: list[dict]) -> None:
    before, after = (expected(some, rows) for some in (grants, [*grants, more]))
    if before is None:
        return
    assert after is not None
    assert set(before[0]) <= set(after[0])
    assert len(before[1]) <= len(after[1])


@given(grants=st.lists(GRANTS, max_size=4))
def test_the_order_of_grants_makes_no_difference(grants: list[Grant]) -> None:
    one, other = CallerAccess(grants).view(TABLE), CallerAccess(grants[::-1]).view(TABLE)
    assert one == other
    assert one is None or other is None or one.identity == other.identity


def test_shares_and_schemas_show_in_which_something_is() -> None:
    reach = CallerAccess([Grant(1, "acme", SharePath("sales", "eu", "orders"))])
    assert reach.sees_share("Sales")
    assert not reach.sees_share("other")
    assert reach.sees_schema("sales", "EU")
    assert not reach.sees_schema("sales", "us")
    assert CallerAccess(None).view(TABLE) is ALL
    assert CallerAccess([]).view(TABLE) is None


def test_a_correction_that_leaves_a_view_is_a_delete_there_and_one_that_enters_it_an_insert() -> None:
    rows = [
        {"a": 1, "b": "x", "c": 1, "op": 0},
        {"a": 2, "b": "y", "c": 1, "op": 0},
        {"a": 1, "b": "x", "c": 1, "op": 2},  # leaves
        {"a": 1, "b": "y", "c": 1, "op": 3},
        {"a": 2, "b": "y", "c": 1, "op": 2},  # enters, across a row group
        {"a": 2, "b": "x", "c": 1, "op": 3},
        {"a": 2, "b": "x", "c": 1, "op": 2},  # stays
        {"a": 2, "b": "x", "c": 2, "op": 3},
        {"a": 2, "b": "x", "c": 2, "op": 1},
    ]
    view = CallerAccess([Grant(1, "acme", SharePath("sales"), None, "b = 'x'")]).view(TABLE)
    assert view is not None
    change = TableChange(ChangeKind.BY_ROW, TableFile("", 0, VERSION, Path()), "op")
    found = made(view, rows, change)
    assert [(row["a"], row["c"], row["_change_type"]) for row in found] == [
        (1, 1, "insert"),
        (1, 1, "delete"),
        (2, 1, "insert"),
        (2, 1, "update_preimage"),
        (2, 2, "update_postimage"),
        (2, 2, "delete"),
    ]
