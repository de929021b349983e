"""Nothing lies under NULL in rows that leave, whatever engines have left there."""

from __future__ import annotations

from decimal import Decimal

import datafusion
import duckdb
import pyarrow as pa
import pytest

from odfpy.data.nulls import emptied
from odfpy.serving.flight.streams import fitting

SECRET = 0x5345435245542121
NUMBER = SECRET.to_bytes(8, "little")
SQL = 'SELECT CASE WHEN "p" THEN "n" END AS n, CASE WHEN "p" THEN "t" ELSE NULL END AS t FROM "raw"'
RAW = pa.table({"n": [1, SECRET, 3], "t": ["shown", "hidden", "too"], "p": [True, False, True]})


def bytes_sent(batch: pa.RecordBatch) -> bytes:
    """A batch as it is sent."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def covered(values: list[object], kind: pa.DataType) -> pa.Array:
    """Values of which only the first is there; the others are still in memory."""
    whole = pa.array(values, kind)
    there = pa.array([at == 0 for at in range(len(values))])
    children = [whole.field(at) for at in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    children = [whole.values] if pa.types.is_list(kind) else children
    own = whole.buffers()[: 1 if pa.types.is_struct(kind) else 2 if children else None]
    return pa.Array.from_buffers(kind, len(values), [there.buffers()[1], *own[1:]], children=children)


KINDS = {
    "number": (pa.int64(), [1, SECRET, SECRET], NUMBER),
    "text": (pa.string(), ["shown", "hidden", "hidden"], b"hidden"),
    "view": (pa.string_view(), ["shown", "hidden one", "this is hidden, and not short"], b"hidden"),
    "binary": (pa.binary(), [b"shown", b"hidden", b"hidden"], b"hidden"),
    "decimal": (pa.decimal128(38, 0), [Decimal(1), Decimal(SECRET), Decimal(SECRET)], NUMBER),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["shown", "hidden", "hidden"], b"hidden"),
    "list": (pa.list_(pa.string()), [["shown"], ["hidden"], ["hidden"]], b"hidden"),
    "structure": (pa.struct([("a", pa.string())]), [{"a": "shown"}, {"a": "hidden"}, {"a": "hidden"}], b"hidden"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_lies_under_null(kind: str) -> None:
    dtype, values, hidden = KINDS[kind]
    if kind == "dictionary":
        column = pa.DictionaryArray.from_arrays(pa.array([0, None, None], pa.int32()), pa.array(["shown", "hidden"]))
    elif kind == "view":
        whole = pa.array(values, dtype)
        column = pa.Array.from_buffers(dtype, 3, [pa.array([True, False, False]).buffers()[1], *whole.buffers()[1:]])
    else:
        column = covered(values, dtype)
    batch = pa.record_batch({"c": column})
    assert hidden in bytes_sent(batch)
    found = emptied(batch)
    assert hidden not in bytes_sent(found)
    assert found.schema == batch.schema
    assert found.column("c").to_pylist() == [values[0], None, None]


def test_bytes_of_other_rows_stay_behind() -> None:
    whole = pa.array(["shown, and too long to be in place", "hidden, and too long to be in place"], pa.string_view())
    assert b"hidden" not in bytes_sent(emptied(pa.record_batch({"c": whole.slice(0, 1)})))


@pytest.mark.parametrize("engine", ["datafusion", "duckdb"])
def test_cells_that_an_engine_makes_null_are_not_sent(engine: str) -> None:
    if engine == "datafusion":
        context = datafusion.SessionContext()
        context.register_record_batches("raw", [RAW.to_batches()])
        table = context.sql(SQL).to_arrow_table()
        assert b"hidden" in bytes_sent(table.to_batches()[0]), "it does not leave values there any more"
    else:
        with duckdb.connect() as connection:
            connection.register("raw", RAW)
            table = connection.sql(SQL).to_arrow_table()
    for batch in table.to_batches():
        for found in fitting(batch, table.schema):
            sent = bytes_sent(found)
            assert b"hidden" not in sent
            assert NUMBER not in sent
            assert found.to_pylist()[0] == {"n": 1, "t": "shown"}
            assert found.column("n").buffers()[1].to_pybytes()[8:16] == bytes(8)


def test_all_null_and_no_rows() -> None:
    for values in ([None, None], []):
        batch = pa.record_batch({"a": pa.array(values, pa.int64()), "b": pa.array(values, pa.null())})
        assert emptied(batch).equals(batch)
