"""Contract of sources of a relay, as tests to inherit for each kind of connection.

class TestMySource(SourceContract):
    def make(self, tables: Mapping[str, pa.Table]) -> Source: ...
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled, QueryTimedOut, ResultTooLarge
from odfpy.federation.errors import SourceFailed, SourceMismatch
from odfpy.federation.sources.contract import ReadLimits, Source

SECRET = "s3cr3t-pa55word"  # noqa: S105  what must not show anywhere

TYPES = pa.schema(
    [
        ("small", pa.int32()),
        ("large", pa.int64()),
        ("real", pa.float64()),
        ("exact", pa.decimal128(15, 2)),
        ("truth", pa.bool_()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("time", pa.timestamp("us")),
    ]
)
ROWS = pa.Table.from_pylist(
    [
        {
            "small": -(2**31),
            "large": 2**62,
            "real": 0.1,
            "exact": Decimal("1234567890123.45"),
            "truth": True,
            "text": "Grüße, 'you' \"there\" \\ 🙂",
            "day": date(1992, 2, 29),
            "time": datetime(1969, 12, 31, 23, 59, 59, 999_999),  # noqa: DTZ001  without a zone
        },
        dict.fromkeys(TYPES.names),
        {
            "small": 0,
            "large": -(2**62),
            "real": -1e300,
            "exact": Decimal("-0.01"),
            "truth": False,
            "text": "x",
            "day": date(2026, 1, 1),
            "time": datetime(2026, 1, 1, 12, 30),  # noqa: DTZ001
        },
    ],
    schema=TYPES,
)
MANY = pa.table({"id": pa.array(range(50_000), pa.int64()), "text": [f"row {n}" for n in range(50_000)]})
HOSTILE = ('we"ird', "Sel;ect --", "ünïcödé", "a.b", "it's", "UPPER", "%s {v} $1", "x" * 60)
TABLES = {
    "typed": ROWS,
    "many": MANY,
    "hostile": pa.table({name: pa.array([number], pa.int64()) for number, name in enumerate(HOSTILE)}),
}
"""Tables that a source must provide for the suite."""


class SourceContract:
    """Tests of the guarantees that relays rely on."""

    has_types = True
    """False for sources that do not preserve the types of columns, such as text files."""

    @pytest.fixture
    def source(self) -> Source:
        """Create a source with `TABLES`."""
        raise NotImplementedError

    @pytest.fixture
    def broken(self) -> Source:
        """Create a source of the same kind that is unreachable, and whose secret, if it has one, is `SECRET`."""
        raise NotImplementedError

    def table(self, name: str) -> str:
        """Return the expression after FROM for a table.

        Args:
            name: one of `TABLES`.
        """
        return f'"{name}"'

    def endless(self) -> str:
        """Return a query with a practically endless result that has a column `id`."""
        many = self.table("many")
        return f'SELECT a."id" AS "id" FROM {many} AS a CROSS JOIN {many} AS b'  # noqa: S608

    def quoted(self, name: str) -> str:
        """Return the name of a column, quoted as in the dialect of the source."""
        return '"' + name.replace('"', '""') + '"'

    # --- Columns and types ---

    def test_columns_of_a_relation(self, source: Source) -> None:
        found = source.schema(f"SELECT * FROM {self.table('typed')}")  # noqa: S608
        assert found.names == TYPES.names
        if self.has_types:
            assert found.field("large").type == pa.int64()
            assert found.field("exact").type == pa.decimal128(15, 2)
            assert found.field("day").type == pa.date32()

    def test_values_come_in_the_types_that_are_wanted(self, source: Source) -> None:
        columns = ", ".join(self.quoted(name) for name in TYPES.names)
        sql = f"SELECT {columns} FROM {self.table('typed')}"  # noqa: S608
        reader = source.read(sql, TYPES)
        assert reader.schema == TYPES
        key = lambda row: (row["small"] is None, row["small"])  # noqa: E731
        assert sorted(reader.read_all().to_pylist(), key=key) == sorted(ROWS.to_pylist(), key=key)

    def test_other_types_without_loss(self, source: Source) -> None:
        wanted = pa.schema([("large", pa.decimal128(20, 0)), ("small", pa.int64()), ("day", pa.timestamp("ns"))])
        sql = f'SELECT "large" AS "large", "small" AS "small", "day" AS "day" FROM {self.table("typed")}'  # noqa: S608
        found = source.read(sql, wanted).read_all()
        assert found.schema == wanted
        assert set(found.column("large").to_pylist()) == {Decimal(2**62), Decimal(-(2**62)), None}

    def test_values_that_do_not_fit_are_an_error_that_names_the_column_and_no_value(self, source: Source) -> None:
        sql = f'SELECT "large" AS "large" FROM {self.table("typed")}'  # noqa: S608
        with pytest.raises(SourceMismatch, match="column 'large' has values that do not fit the type int16") as caught:
            source.read(sql, pa.schema([("large", pa.int16())])).read_all()
        assert str(2**62) not in caught.value.message

    @pytest.mark.parametrize("wanted", [["small"], ["small", "other"], ["small", "large", "real"], ["large", "small"]])
    def test_other_columns_than_wanted_are_an_error(self, source: Source, wanted: list[str]) -> None:
        sql = f'SELECT "small" AS "small", "large" AS "large" FROM {self.table("typed")}'  # noqa: S608
        with pytest.raises(SourceMismatch):
            source.read(sql, pa.schema([(name, pa.int64()) for name in wanted])).read_all()

    def test_hostile_names(self, source: Source) -> None:
        columns = ", ".join(self.quoted(name) for name in HOSTILE)
        sql = f"SELECT {columns} FROM {self.table('hostile')}"  # noqa: S608
        wanted = pa.schema([(name, pa.int64()) for name in HOSTILE])
        assert source.read(sql, wanted).read_all().to_pylist() == [{name: at for at, name in enumerate(HOSTILE)}]
        assert [one.lower() for one in source.schema(sql).names] == [one.lower() for one in HOSTILE]

    def test_a_deep_condition(self, source: Source) -> None:
        condition = " OR ".join(f'"id" = {number}' for number in range(100))
        sql = f'SELECT count(*) AS "n" FROM {self.table("many")} WHERE {condition}'  # noqa: S608
        assert source.read(sql, pa.schema([("n", pa.int64())])).read_all().to_pylist() == [{"n": 100}]

    # --- Rows ---

    def test_rows_come_in_batches(self, source: Source) -> None:
        sql = f'SELECT "id" AS "id", "text" AS "text" FROM {self.table("many")}'  # noqa: S608
        batches = list(source.read(sql, MANY.schema))
        assert len(batches) > 1
        assert max(batch.num_rows for batch in batches) < MANY.num_rows
        assert pa.Table.from_batches(batches).sort_by("id").equals(MANY)

    def test_no_rows(self, source: Source) -> None:
        sql = f'SELECT "id" AS "id" FROM {self.table("many")} WHERE "id" < 0'  # noqa: S608
        found = source.read(sql, pa.schema([("id", pa.int64())])).read_all()
        assert (found.num_rows, found.schema.names) == (0, ["id"])

    def test_threads_read_at_once(self, source: Source) -> None:
        found: list[Any] = []

        def read(number: int) -> None:
            sql = f'SELECT max("id") AS "m" FROM {self.table("many")} WHERE "id" <= {number}'  # noqa: S608
            found.extend(source.read(sql, pa.schema([("m", pa.int64())])).read_all().column(0).to_pylist())

        threads = [threading.Thread(target=read, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [0, 1, 2, 3]

    # --- Ends ---

    def test_cancelled_while_rows_are_read(self, source: Source) -> None:
        control = CancellationToken()
        reader = source.read(self.endless(), pa.schema([("id", pa.int64())]), cancelled=control)
        assert reader.read_next_batch().num_rows
        threading.Thread(target=control.cancel).start()
        with pytest.raises(QueryCancelled):
            for _ in reader:
                pass

    def test_cancelled_before_it_begins(self, source: Source) -> None:
        control = CancellationToken()
        control.cancel()
        with pytest.raises(QueryCancelled):
            source.read(self.endless(), pa.schema([("id", pa.int64())]), cancelled=control).read_all()

    def test_a_reader_that_is_dropped_ends_the_read(self, source: Source) -> None:
        reader = source.read(self.endless(), pa.schema([("id", pa.int64())]))
        assert reader.read_next_batch().num_rows
        del reader
        source.read(
            f'SELECT "id" AS "id" FROM {self.table("many")} WHERE "id" = 1',  # noqa: S608
            pa.schema([("id", pa.int64())]),
        ).read_all()

    def test_no_more_seconds(self, source: Source) -> None:
        limits = ReadLimits(seconds=0.5)
        with pytest.raises(QueryTimedOut):
            for _ in source.read(self.endless(), pa.schema([("id", pa.int64())]), limits):
                pass

    @pytest.mark.parametrize("limits", [ReadLimits(rows=10_000), ReadLimits(bytes=100_000)], ids=["rows", "bytes"])
    def test_no_more_rows_or_bytes(self, source: Source, limits: ReadLimits) -> None:
        with pytest.raises(ResultTooLarge):
            for _ in source.read(self.endless(), pa.schema([("id", pa.int64())]), limits):
                pass

    def test_limits_that_are_kept(self, source: Source) -> None:
        sql = f'SELECT "id" AS "id" FROM {self.table("many")}'  # noqa: S608
        limits = ReadLimits(rows=MANY.num_rows, bytes=10 << 20, seconds=600)
        assert source.read(sql, pa.schema([("id", pa.int64())]), limits).read_all().num_rows == MANY.num_rows

    # --- Errors ---

    def test_a_relation_that_is_not_there(self, source: Source) -> None:
        sql = 'SELECT "x" AS "x" FROM "no_such_table_anywhere"'
        attempts: tuple[Callable[[], object], ...] = (
            lambda: source.read(sql, pa.schema([("x", pa.int64())])).read_all(),
            lambda: source.schema(sql),
        )
        for attempt in attempts:
            with pytest.raises(SourceFailed) as caught:
                attempt()
            assert "no_such_table" not in caught.value.message, "who asks learns no names"
            assert caught.value.detail, "operators learn what was wrong"

    def test_an_error_in_the_data_shows_no_value(self, source: Source) -> None:
        sql = f'SELECT CAST("text" AS INTEGER) AS "n" FROM {self.table("many")}'  # noqa: S608
        with pytest.raises(SourceFailed) as caught:
            source.read(sql, pa.schema([("n", pa.int64())])).read_all()
        assert "row" not in caught.value.message

    def test_a_source_that_is_not_there(self, broken: Source, caplog: pytest.LogCaptureFixture) -> None:
        sql = f'SELECT "small" AS "x" FROM {self.table("typed")}'  # noqa: S608
        with pytest.raises(SourceFailed) as caught:
            broken.read(sql, pa.schema([("x", pa.int64())])).read_all()
        shown = f"{caught.value.message} {caught.value.hint} {caught.value.detail} {caplog.text}"
        assert SECRET not in shown
        assert caught.value.__cause__ is None

    def test_closing(self, source: Source) -> None:
        source.close()
