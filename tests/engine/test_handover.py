"""Tables that go to an engine in another process, and come back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.data.schemas.retype import retype
from odfpy.engine.spark.rows.handover import ROW_NUMBER, hand_over
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import InvalidQuery

WIDE = {
    pa.uint8(): pa.int16(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.time32("ms"): pa.time64("us"),
    pa.float16(): pa.float32(),
}


def wide(arrow: pa.DataType) -> pa.DataType:
    """A type as Spark gives it back: wider, and with members that may be null."""
    if pa.types.is_struct(arrow):
        return pa.struct([pa.field(field.name, wide(field.type)) for field in arrow.fields])
    if pa.types.is_map(arrow):
        return pa.map_(wide(arrow.key_type), wide(arrow.item_type))
    if pa.types.is_fixed_size_list(arrow):
        return pa.list_(wide(arrow.value_type), arrow.list_size)
    if pa.types.is_list(arrow):
        return pa.list_(wide(arrow.value_type))
    return WIDE.get(arrow, arrow)


INNER = pa.struct([pa.field("u", pa.uint64(), nullable=False), pa.field("f", pa.float16())])
VALUES = [
    (pa.uint8(), [0, None, 255]),
    (pa.time32("ms"), [1, None, 86_399_999]),
    (INNER, [{"u": 2**64 - 1, "f": 1.5}, None, {"u": 0, "f": None}]),
    (pa.list_(INNER), [[{"u": 1, "f": None}], None, [], [{"u": 2, "f": 0.5}, None]]),
    (pa.list_(pa.uint8(), 2), [[1, None], None, [2, 3]]),
    (pa.map_(pa.string(), INNER), [[("a", {"u": 1, "f": None}), ("b", None)], None, [], [("c", None)]]),
    (
        pa.struct([pa.field("l", pa.list_(pa.field("item", pa.uint8(), nullable=False)))]),
        [{"l": [1, 2]}, {"l": None}, None],
    ),
]


@pytest.mark.parametrize(
    ("arrow", "values"), VALUES, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_values_get_their_own_type_back_wherever_they_are_cut(arrow: pa.DataType, values: list[object]):
    array = pa.array([*values, *values], arrow)
    there = retype(array, wide(arrow))
    there.validate(full=True)
    for start in range(len(array)):
        for length in range(len(array) - start + 1):
            back = retype(there.slice(start, length), arrow)
            back.validate(full=True)
            assert back.type.equals(arrow)
            assert back.to_pylist() == array.slice(start, length).to_pylist()


def test_rows_go_with_their_running_number(tmp_path: Path):
    table = pa.table({"n": [5, 6], "f": [0.5, None], "u": pa.array([1, 2], pa.uint8())})
    (handed,) = hand_over({"input": pa.concat_tables([table, table])}, tmp_path)
    assert handed.name == "input"
    assert handed.watched == ("f", "u")
    read = pq.read_table(handed.data_path)
    assert read.column(ROW_NUMBER).to_pylist() == [0, 1, 2, 3]
    assert read.column("u").type == pa.uint8()


def test_the_name_of_the_running_number_is_taken(tmp_path: Path):
    with pytest.raises(InvalidQuery, match=ROW_NUMBER):
        hand_over({"input": pa.table({ROW_NUMBER: [1]})}, tmp_path)


def test_what_a_killed_client_left_goes_with_the_next_worker(tmp_path: Path):
    run = RunFolder(tmp_path / "run")
    with run.client_scratch() as mine:
        dead = mine.with_name("4194305-x")  # Linux gives no process a number above 4194304
        dead.mkdir()
        (dead / "0.parquet").touch()
        run.sweep_if_abandoned()
        assert mine.is_dir()
        assert not dead.exists()
    assert not mine.exists()


def test_a_list_gets_its_fixed_length_back():
    """Spark gives lists without one."""
    wanted = pa.list_(pa.uint8(), 2)
    array = pa.array([[1, None], None, [2, 3]], pa.list_(pa.int16()))
    back = retype(array[1:], wanted)
    back.validate(full=True)
    assert back.to_pylist() == [None, [2, 3]]
    assert back.type.equals(wanted)
