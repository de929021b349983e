"""The query service over a workspace: datasets as they were, what is opened for it, ways that agree, limits, errors."""

from __future__ import annotations

import json
import random
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.workspaces import feed, root, workspace_with
from support.examples import examples
from support.queries.changelogs import Event, as_at, as_of, current, offsets_of

from odfpy.chain.block import HashedBlock
from odfpy.chain.references import ReferenceKind
from odfpy.chain.slices import slices_of
from odfpy.coordinator.workspace import Workspace
from odfpy.data.vocabulary import OperationType
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, QueryCancelled, QueryTimedOut, ResultTooLarge, UsageError
from odfpy.query.dialects import DIALECTS, Dialect, parameter_places, with_parameters
from odfpy.query.log_query import simple_query
from odfpy.query.service import Query

NAME = "com.example.changes"
CHANGES = f"""
kind: DatasetSnapshot
version: 1
content:
  name: {NAME}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: op, type: Int32}}
            - {{name: event_time, type: Timestamp}}
            - {{name: key, type: String}}
            - {{name: value, type: Int32}}
      merge: {{kind: ChangelogStream, primaryKey: [key]}}
"""
COMMITS = 5
DAYS = (1, 2, 3, 4)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A changelog of several slices, whose rows are corrected and taken back, and a ledger."""
    found = workspace_with(
        tmp_path_factory.mktemp("workspace"), CHANGES, root("other"), root("kept"), root("appended", "{kind: Append}")
    )
    chance = random.Random(7)
    there: list[tuple[int, str, int]] = []
    for commit in range(COMMITS):
        lines = []
        for _ in range(8):
            row = (chance.choice(DAYS), chance.choice("abc"), chance.randrange(3))
            kind = chance.random()
            if there and kind < 0.5:
                old = there.pop(chance.randrange(len(there)))
                lines += [(1, *old)] if kind < 0.2 else [(2, *old), (3, row[0], old[1], row[2])]
                there += [] if kind < 0.2 else [(row[0], old[1], row[2])]
            else:
                lines.append((0, *row))
                there.append(row)
        ingest(found, lines)
        feed(found, "appended", f"{commit} x", day=commit + 1)
        snapshot = [f"{key} {chance.choice('xyz')}" for key in range(4) if chance.random() < 0.7] or ["9 x"]
        feed(found, "kept", *snapshot, day=chance.choice(DAYS))
    feed(found, "other", "1 x")
    found.branches.create(NAME, ReferenceKind.TAG, "v1", "2")
    return found


def ingest(workspace: Workspace, lines: list[tuple[int, int, str, int]]) -> None:
    rows = [
        json.dumps({"op": op, "event_time": f"2024-01-{day:02}T00:00:00Z", "key": key, "value": value})
        for op, day, key, value in lines
    ]
    file = workspace.root / "changes.ndjson"
    file.write_text("\n".join(rows))
    (result,) = workspace.ingest(NAME, [file])
    assert result.error is None, result.error


DATASETS = {NAME: False, "kept": True}
"""Datasets, and whether they have a primary key: rows of a changelog stream may have one key, several of them."""


def log_of(workspace: Workspace, name: str) -> list[Event]:
    """The rows of a changelog; system times are numbers of commits."""
    rows = workspace.tail(name, 1000).to_pylist()
    commits = sorted({row["system_time"] for row in rows})
    return [
        Event(offset, OperationType(op), commits.index(system), time.day, *data)
        for offset, op, system, time, *data in (row.values() for row in rows)
    ]


def blocks(workspace: Workspace, name: str = NAME) -> list[HashedBlock]:
    """The blocks that brought rows."""
    return [one.block for one in slices_of(workspace.storage.get(name).chain.in_order())]


def ask(workspace: Workspace, text: str, dialect: str = "datafusion", **more: Any) -> pa.Table:
    with workspace.query_service.run(Query(text, dialect, **more)) as answer:
        return answer.read_all()


def offsets(workspace: Workspace, table: str) -> list[int]:
    return sorted(ask(workspace, f'SELECT "offset" FROM {table}').column(0).to_pylist())


# --- Datasets as they were -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DATASETS)
def test_as_at_a_time_a_block_and_an_offset(workspace: Workspace, name: str) -> None:
    log, keyed = log_of(workspace, name), DATASETS[name]
    for commit, one in enumerate(blocks(workspace, name)):
        known = offsets_of(current(as_at(log, commit), keyed=keyed))
        time = one.block.system_time
        last = max(row.offset for row in as_at(log, commit))
        forms = [
            f"odf_as_at('{name}', {at})" for at in (f"'{time}'", f"TIMESTAMP '{time}'", f"'{one.hash}'", str(last))
        ]
        forms += [f"FOR SYSTEM_TIME AS OF '{time}'", f"TIMESTAMP AS OF '{time}'", f"VERSION AS OF '{one.hash}'"]
        forms += [f"VERSION AS OF {one.block.sequence_number}", f"VERSION AS OF '{one.block.sequence_number}'"]
        for form in forms:
            table = form if form.startswith("odf") else f'"{name}" {form}'
            assert offsets(workspace, table) == known, table


def test_as_at_a_tag_and_the_number_of_a_block(workspace: Workspace) -> None:
    assert offsets(workspace, f"odf_as_at('{NAME}', 'v1')") == offsets(workspace, f"odf_as_at('{NAME}', '2')")
    assert offsets(workspace, f"odf_changelog('{NAME}@v1')") == offsets(workspace, f'"{NAME}@v1"')


def test_as_at_an_offset_in_the_middle_of_a_slice(workspace: Workspace) -> None:
    log = log_of(workspace, NAME)
    for last in range(0, len(log), 5):
        assert offsets(workspace, f"odf_as_at('{NAME}', {last})") == offsets_of(current(log[: last + 1], keyed=False))
    assert offsets(workspace, f"odf_as_at('{NAME}', 99999)") == offsets_of(current(log, keyed=False))


@pytest.mark.parametrize("name", DATASETS)
def test_as_of_a_time_and_both_together(workspace: Workspace, name: str) -> None:
    log, keyed = log_of(workspace, name), DATASETS[name]
    for day in DAYS:
        time = f"2024-01-{day:02}"
        assert offsets(workspace, f"odf_as_of('{name}', '{time}')") == offsets_of(as_of(log, day, keyed=keyed))
        for commit, one in list(enumerate(blocks(workspace, name)))[::2]:
            both = f"odf_as_at_of('{name}', '{one.hash}', DATE '{time}')"
            assert offsets(workspace, both) == offsets_of(as_of(as_at(log, commit), day, keyed=keyed))


def test_the_log_and_the_current_state_with_keys(workspace: Workspace) -> None:
    log = log_of(workspace, NAME)
    assert offsets(workspace, f"odf_changelog('{NAME}')") == list(range(len(log)))
    assert offsets(workspace, f"odf_current('{NAME}')") == offsets_of(current(log, keyed=False))
    assert offsets(workspace, f"odf_current('{NAME}', 'key')") == offsets_of(current(log, keyed=True))
    by_both = {(row.key, row.value): row for row in log}
    wanted = offsets_of([row for row in by_both.values() if row.gains])
    assert offsets(workspace, f"odf_current('{NAME}', 'key', 'value')") == wanted


def test_as_at_a_time_within_a_slice_that_was_compacted(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("appended", "{kind: Append}"))
    times = []
    for day in (1, 2, 3):
        feed(workspace, "appended", f"{day} x", f"{day} y", day=day)
        times.append(workspace.datasets.state("appended").system_time)
    workspace.maintenance.compact("appended")
    assert len(blocks(workspace, "appended")) == 1
    for commit, time in enumerate(times, start=1):
        assert offsets(workspace, f"odf_as_at('appended', '{time}')") == list(range(2 * commit))


def test_several_tables_of_one_dataset_keep_their_names(workspace: Workspace) -> None:
    text = f'SELECT c.key FROM odf_current(\'{NAME}\') c JOIN "{NAME}" l ON c."offset" = l."offset" ORDER BY 1'
    assert ask(workspace, text).num_rows == ask(workspace, f"SELECT * FROM odf_current('{NAME}')").num_rows
    assert ask(workspace, "SELECT other.id FROM odf_current('other') WHERE other.id > 0").num_rows == 1


def test_pins_and_what_an_answer_was_made_from(workspace: Workspace) -> None:
    log = log_of(workspace, NAME)
    handle = workspace.datasets.handle(NAME)
    for commit, one in enumerate(blocks(workspace)):
        query = Query(f'SELECT * FROM "{NAME}"', "datafusion", pins={handle.id: one.hash})
        with workspace.query_service.run(query) as answer:
            assert [(one.id, one.alias, one.block_hash) for one in answer.inputs] == [(*vars_of(handle), one.hash)]
            assert answer.read_all().num_rows == len(as_at(log, commit))
    renamed = Query("SELECT count(*) FROM mine", names={"mine": handle.id})
    with workspace.query_service.run(renamed) as answer:
        assert answer.path == "chain"
        assert answer.read_all().to_pylist() == [{"count(1)": len(log)}]


def vars_of(handle: Any) -> tuple[Any, Any]:
    return handle.id, handle.alias


# --- What is opened --------------------------------------------------------------------------------------------------


def test_slices_that_cannot_matter_are_not_read(workspace: Workspace) -> None:
    first = blocks(workspace)[0]
    service = workspace.query_service

    def told(text: str) -> str:
        return service.explain(Query(text, "datafusion"))

    assert "1 of 5 are read" in told(f"SELECT sum(value) FROM odf_as_at('{NAME}', '{first.block.system_time}')")
    assert "4, later than the requested time" in told(f"SELECT sum(value) FROM odf_as_at('{NAME}', '{first.hash}')")
    of = told("SELECT sum(id) FROM odf_as_of('appended', '2024-01-02')")
    assert "2 of 5 are read" in of
    assert "3, all rows have later event times" in of
    assert "path: chain" in told("SELECT count(*) FROM other")
    assert "1 of 5 are read" in told(f'SELECT * FROM "{NAME}" LIMIT 2')
    assert ask(workspace, f'EXPLAIN SELECT * FROM "{NAME}"').column_names == ["plan"]


def test_slices_that_are_not_read_may_be_gone(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("appended", "{kind: Append}"))
    for day in (1, 2, 3):
        feed(workspace, "appended", f"{day} x", day=day)
    dataset = workspace.storage.get("appended")
    for file in list(dataset.folder.glob("data/*")):
        if file.name == str(dataset.state.last_data_event.new_data.physical_hash):
            file.write_bytes(b"damaged")
    assert ask(workspace, "SELECT id FROM odf_as_at('appended', 1)").num_rows == 2
    assert ask(workspace, 'SELECT id FROM appended WHERE "offset" <= 1').num_rows == 2
    assert ask(workspace, "SELECT count(*) FROM appended").to_pylist() == [{"count(*)": 3}]


# --- Every way gives the same ----------------------------------------------------------------------------------------

COLUMNS = ("offset", "op", "system_time", "event_time", "key", "value")


@st.composite
def simple_queries(draw: st.DrawFn) -> tuple[str, str]:
    """A query that needs no engine, and the same made up so that it does."""
    names = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3, unique=True))
    shown = draw(st.sampled_from(["*", ", ".join(f'"{name}"' for name in names), '"key" AS k, t.value']))
    totals = 'count(*) AS n, min("offset") AS a, max("offset") AS b'
    if draw(st.integers(0, 5)) == 0:
        return f'SELECT {totals} FROM "{NAME}" t', f'SELECT {totals} FROM "{NAME}" t WHERE 1 = 1'
    low, high = sorted(draw(st.tuples(st.integers(0, 40), st.integers(42, 70))))
    bounds = [f'"offset" >= {low}', f'"offset" < {high + 1}', f'"offset" > {low}', f'"offset" <= {high}']
    conditions = draw(st.lists(st.sampled_from(bounds), max_size=2) | st.just([f'"offset" = {low}']))
    direction = draw(st.sampled_from(["", " DESC", " ASC"]))
    most, skip = draw(st.none() | st.integers(0, 70)), draw(st.none() | st.integers(0, 50))
    end = "" if most is None else f" LIMIT {most}"
    end += "" if skip is None else f" OFFSET {skip}"

    def text(*more: str) -> str:
        where = " AND ".join([*conditions, *more])
        return f'SELECT {shown} FROM "{NAME}" t{where and f" WHERE {where}"} ORDER BY "offset"{direction}{end}'

    return text(), text("1 = 1")


@settings(max_examples=examples(8, 25))
@given(simple_queries(), st.integers(0, 3), st.none() | st.integers(0, 9))
def test_every_way_gives_the_same_rows(
    workspace: Workspace, texts: tuple[str, str], skip: int, limit: int | None
) -> None:
    found = []
    for text in texts:
        with workspace.query_service.run(Query(text, "datafusion", skip=skip, limit=limit)) as answer:
            found.append((answer.path, answer.schema.names, answer.schema.types, answer.read_all().to_pylist()))
    assert found[0][0] != "datafusion" or "DESC" in texts[0]
    assert found[1][0] == "datafusion"
    assert found[0][1:] == found[1][1:]


def test_conditions_that_contradict_each_other_have_no_rows(workspace: Workspace) -> None:
    for more in ("", " AND 1 = 1"):
        text = f'SELECT count(*) AS n FROM "{NAME}" WHERE "offset" = 0 AND "offset" = 1{more}'
        assert ask(workspace, text).to_pylist() == [{"n": 0}]


def test_prepared_queries_and_parameters(workspace: Workspace) -> None:
    text = "SELECT id, name FROM appended WHERE id > ? AND name = ? ORDER BY id"
    prepared = workspace.query_service.prepare(Query(text, "datafusion"))
    assert (prepared.num_parameters, prepared.schema.names) == (2, ["id", "name"])
    assert ask(workspace, text, parameters=(2, "x")).column(0).to_pylist() == [3, 4]
    assert ask(workspace, text, parameters=(2, "x' OR 'x' = 'x")).num_rows == 0
    when = datetime(2024, 1, 2, tzinfo=timezone.utc)
    found = ask(
        workspace, "SELECT id FROM odf_as_at_of(?, ?, ?) ORDER BY id LIMIT ?", parameters=("appended", 3, when, 9)
    )
    assert found.column(0).to_pylist() == [0, 1]
    values = (None, True, -1, 1.5, "it's", b"\x00\xff", Decimal("-1.50"), when, date(2024, 1, 2))
    for dialect in DIALECTS.values():
        written = ", ".join("?" * len(values))
        text = with_parameters(f"SELECT {written}, '?' -- ?", dialect, values)
        assert not parameter_places(text, dialect)
    (row,) = ask(
        workspace, f"SELECT {', '.join(f'? AS c{at}' for at in range(len(values)))}", parameters=values
    ).to_pylist()
    assert tuple(row.values())[:6] == values[:6]
    assert (str(row["c6"]), row["c8"]) == ("-1.50", date(2024, 1, 2))
    for wrong in ((), (1,), (1, 2, 3)):
        with pytest.raises(OdfError, match="2 parameters"):
            ask(workspace, "SELECT ?, ?", parameters=wrong)


@pytest.mark.parametrize("text", ["12345678901234567890.123456789", "-0.001", "1E+5", "1E-10", "0E-3"])
def test_decimal_parameters_are_exact(workspace: Workspace, text: str) -> None:
    (found,) = ask(workspace, "SELECT ? AS v", parameters=(Decimal(text),)).column(0).to_pylist()
    assert (type(found), found) == (Decimal, Decimal(text))


def test_decimal_parameters_with_too_many_digits_are_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="38 digits at most, not 1000000000"):
        ask(workspace, "SELECT ? AS v", parameters=(Decimal("1E+999999999"),))


# --- Limits ----------------------------------------------------------------------------------------------------------

ENDLESS = "SELECT count(*) FROM range(100000000) a JOIN range(100000) b ON a.value % 7 < b.value % 5"


def test_an_answer_is_no_larger_than_it_may_be(workspace: Workspace) -> None:
    for text in ("SELECT * FROM appended", "SELECT * FROM appended WHERE 1 = 1"):
        assert ask(workspace, text, max_bytes=100_000).num_rows == 5
        with pytest.raises(ResultTooLarge, match="more than 10 bytes"):
            ask(workspace, text, max_bytes=10)


def test_a_query_that_takes_too_long_is_stopped(workspace: Workspace) -> None:
    with pytest.raises(QueryTimedOut, match=r"longer than 0\.2 s"):
        ask(workspace, ENDLESS, timeout=0.2)


def test_a_query_is_cancelled_while_it_is_read(workspace: Workspace) -> None:
    with workspace.query_service.run(Query(ENDLESS, "datafusion")) as answer:
        answer.cancel()
        with pytest.raises(QueryCancelled):
            answer.read_all()
    control = CancellationToken()
    control.cancel()
    with pytest.raises(QueryCancelled):
        workspace.query_service.run(Query("SELECT * FROM appended"), control).read_all()


def test_an_answer_that_is_not_read_to_its_end_leaves_nothing(workspace: Workspace) -> None:
    with workspace.query_service.run(Query("SELECT * FROM range(10000000)", "datafusion")) as answer:
        next(iter(answer))
    scratch = workspace.storage.run / "scratch"
    assert not scratch.exists() or not list(scratch.iterdir())


# --- Wrong input -----------------------------------------------------------------------------------------------------

CARET = {
    "SELECT * FROM odf_as_of('other', 'yesterday')": ("E705", "'yesterday'", "Not a time"),
    "SELECT * FROM other TIMESTAMP AS OF '2024-13-01'": ("E705", "'2024-13-01'", "Not a time"),
    "SELECT * FROM odf_as_at('other', '2024-02-30T99:00:00Z')": ("E705", "'2024-02-30T99:00:00Z'", "Not a time"),
    "SELECT * FROM odf_as_at('other')": ("E705", "odf_as_at", "2 arguments, not 1"),
    "SELECT * FROM odf_as_at('other', now())": ("E705", "(", "not a constant"),
    "SELECT * FROM odf_current('other', 'idd')": ("E705", "odf_current('other', 'idd')", "no column `idd`"),
    "SELECT * FROM odf_as_at('other', '2020-01-01')": ("E701", "odf_as_at('other', '2020-01-01')", "did not exist yet"),
    "SELECT * FROM odf_as_at('other', 'nine')": ("E641", "odf_as_at('other', 'nine')", "no block"),
    "SELECT * FROM odf_as_at('other', 'next tuesday')": (
        "E641",
        "odf_as_at('other', 'next tuesday')",
        "it is not a time",
    ),
    "SELECT id, odf_current('other') FROM other": ("E705", "odf_current('other')", "is a table, not a value"),
    "SELECT * FROM odf_curent('other')": ("E705", "odf_curent", "There is no `odf_curent`"),
    "SELECT *\nFROM othre": ("E707", "othre", "No dataset 'othre'"),
    "SELECT * FROM '/etc/passwd'": ("E707", "'/etc/passwd'", "No dataset"),
    "DROP TABLE other": ("E501", "DROP", "Only queries"),
    "SET a = 1": ("E501", "SET", "Only queries"),
    "SELECT idd FROM other WHERE 1 = 1": ("E501", "idd", "No field named idd"),
    "SELECT * FRM other": ("E501", "FRM", "Expected"),
    "SELECT 1; SELECT 2": ("E501", "SELECT 2", "A second statement"),
    "SHOW TABLES": ("E501", "SHOW", "Only queries"),
    "DESCRIBE other": ("E501", "DESCRIBE", "Only queries"),
    "SELECT * FROM other TIMESTAMP AS OF now()": ("E705", "now", "is not a constant"),
    "SELECT * FROM other VERSION AS OF": ("E705", "OF", "is not a constant"),
    "SELECT * FROM odf_as_at('other', -1)": ("E705", "-", "A time, a block, a tag or an offset"),
}


@pytest.mark.parametrize("text", CARET)
def test_what_is_wrong_has_a_caret_under_it(workspace: Workspace, text: str) -> None:
    code, place, message = CARET[text]
    with pytest.raises(OdfError) as raised:
        ask(workspace, text)
    assert raised.value.code == code
    assert message in raised.value.message
    *_, line, carets = raised.value.message.splitlines()
    assert line[carets.index("^") :].startswith(place), raised.value.message
    assert code == "E501" or raised.value.hint


@pytest.mark.parametrize("text", ["", " ; ", "-- nothing", "/* nothing */ ;"])
def test_no_query_is_none_with_comments_either(workspace: Workspace, text: str) -> None:
    with pytest.raises(OdfError, match="There is no query"):
        ask(workspace, text)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize(
    "text",
    ["SELECT a, FROM t", "SELECT , a FROM t", "SELECT a FROM t,", "SELECT a FROM t ORDER BY offset, LIMIT 1"],
)
def test_a_comma_too_many_is_for_the_engine_to_find(dialect: Dialect, text: str) -> None:
    assert simple_query(text.replace(", LIMIT", " LIMIT").replace(",", ""), dialect, "offset") is not None
    assert simple_query(text, dialect, "offset") is None


def test_a_block_of_another_dataset(workspace: Workspace) -> None:
    head = workspace.storage.get(NAME).chain.head()
    for query in (
        Query(f"SELECT * FROM odf_as_at('other', '{head}')"),
        Query("SELECT * FROM other", pins={workspace.datasets.handle("other").id: head}),
    ):
        with pytest.raises(OdfError, match=f"belongs to {NAME}, not to other") as raised:
            workspace.query_service.run(query)
        assert raised.value.code == "E706"


def test_a_dataset_without_data_has_no_columns(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("empty", "{kind: Append}"))
    with pytest.raises(OdfError, match="no data yet"):
        ask(workspace, "SELECT * FROM empty")
