"""Slices that are not what their blocks say, or stand for more than there is memory, do no harm to who copies or reads."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.attack.targets import CORPUS
from support.chains.small_datasets import LOGICAL_HASH, NOON, append, make_dataset
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import ask, put, serving, workspace_at

from odfpy.chain.events import AddData, DataSlice, SetDataSchema
from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.slices.bounded_batches import BATCH_BYTES
from odfpy.data.slices.slice import iter_slice
from odfpy.errors import IntegrityError, OdfError, ResultTooLarge, TransferError
from odfpy.http.limits import TransferLimits, set_limits
from odfpy.query.query import Query
from odfpy.repository.transfer.simple import transfer
from odfpy.serving.callers.visibility import Visibility, set_visibility

NAME = "com.example.rates"
TIMES = pa.timestamp("ms", "UTC")


@pytest.fixture(autouse=True)
def usual_limits() -> Iterator[None]:
    yield
    set_limits(TransferLimits())


def rows(count: int, names: Any, start: int = 0) -> pa.Table:
    times = pa.array([NOON.nanos // 1_000_000] * count, pa.int64()).cast(TIMES)
    parts = [pa.array(range(start, start + count), pa.int64()), pa.array([0] * count, pa.int32()), times, times, names]
    return pa.table(parts, ["offset", "op", "system_time", "event_time", "name"])


def bomb(count: int, size: int = 1 << 20) -> pa.Table:
    """As many rows as you like, each of which is a megabyte; all of it has little more than one."""
    return rows(count, pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int8()), pa.array(["x" * size])))


def packed(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", store_schema=False, **options)
    return sink.getvalue()


SCHEMA = SetDataSchema(schema=from_arrow(rows(0, pa.array([], pa.string())).schema))


def dataset_with(layout: DatasetLayout, data: bytes, first: int, last: int) -> DatasetLayout:
    make_dataset(layout)
    layout.data.insert(data)
    new = DataSlice(LOGICAL_HASH, Multihash.of(data), OffsetInterval(first, last), len(data))
    append(layout, [SCHEMA, AddData(prev_checkpoint=None, prev_offset=None, new_data=new)])
    return layout


def pulled(tmp_path: Path, data: bytes, last: int) -> DatasetLayout:
    source = dataset_with(DatasetLayout.local(tmp_path / "source"), data, 0, last)
    target = DatasetLayout.local(tmp_path / "target")
    transfer(source, target)
    return target


# --- At pull ---


def test_what_fits_is_taken(tmp_path: Path) -> None:
    assert pulled(tmp_path, packed(rows(3, pa.array(["a", "b", "c"]))), 2).chain.state().num_records == 3


@pytest.mark.parametrize(
    ("table", "last", "problem"),
    [
        (bomb(100_000), 2, "it has 100000 rows, the block 3"),
        (rows(3, pa.array(["a"] * 3)), 4_600_000_000_000_000_000, "it has 3 rows, the block 4600000000000000001"),
        (rows(3, pa.array(["a"] * 3), start=5), 2, "its offsets are 5 to 7, the block says 0 to 2"),
        (rows(3, pa.array([1, 2, 3])), 2, "its column 'name' is int64, the schema says string"),
        (rows(3, pa.array([["a"]] * 3)), 2, "its column 'name' is list"),
        (rows(3, pa.array(["a"] * 3)).append_column("more", [[1, 2, 3]]), 2, "it has a column 'more'"),
        (rows(3, pa.array(["a"] * 3)).drop_columns("offset"), 2, "it has no column 'offset'"),
    ],
)
def test_a_footer_says_what_the_block_says(tmp_path: Path, table: pa.Table, last: int, problem: str) -> None:
    with pytest.raises(IntegrityError, match=rf"Block 2 \(f1620\w+\): Data file .*: {problem}"):
        pulled(tmp_path, packed(table), last)
    target = DatasetLayout.local(tmp_path / "target")
    assert (target.refs.get("head"), [*target.data]) == (None, [])


def test_a_footer_that_breaks_the_reader_breaks_only_the_process_that_looks(tmp_path: Path) -> None:
    """pyarrow ends its process over this one: found by `make attack slice`."""
    data = (CORPUS / "slice" / "level-histogram").read_bytes()
    with pytest.raises(
        IntegrityError, match=r"Block 2 \(f1620\w+\): Data file .* its footer crashes the Parquet reader"
    ):
        pulled(tmp_path, data, 2)
    assert not list((tmp_path / "target" / "data").iterdir())
    good = packed(rows(3, pa.array(["a", "b", "c"])))
    assert pulled(tmp_path / "next", good, 2).data.read(Multihash.of(good)) == good


def test_what_comes_out_of_a_slice_is_bounded(tmp_path: Path) -> None:
    set_limits(TransferLimits(most_unpacked=10_000))
    data = packed(rows(3, pa.array(["x" * 10_000, "y" * 10_000, "z"])), use_dictionary=False)
    with pytest.raises(IntegrityError, match="bytes unpacked, 10000 are allowed"):
        pulled(tmp_path, data, 2)


def test_a_slice_that_is_here_already_stays(tmp_path: Path) -> None:
    data = packed(rows(3, pa.array(["a", "b", "c"])))
    source = dataset_with(DatasetLayout.local(tmp_path / "source"), data, 0, 4)
    target = DatasetLayout.local(tmp_path / "target")
    target.data.insert(data)
    with pytest.raises(IntegrityError):
        transfer(source, target)
    assert [*target.data] == [Multihash.of(data)]


# --- When it is read ---


def test_batches_are_bounded_in_bytes(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    path.write_bytes(packed(bomb(50_000)))
    assert path.stat().st_size < 200_000
    batches = iter_slice(path)
    for _ in range(3):
        assert 0 < next(batches).nbytes <= 1.1 * BATCH_BYTES
    plain = tmp_path / "plain.parquet"
    plain.write_bytes(packed(rows(300, pa.array(["x" * (1 << 20)] * 300)), use_dictionary=False))
    assert max(batch.nbytes for batch in iter_slice(plain)) <= 1.1 * BATCH_BYTES
    assert sum(batch.num_rows for batch in iter_slice(plain, first=7, last=255)) == 249


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A dataset of six rows, of which one slice is going to be another one."""
    found = workspace_with(tmp_path / "w", root(NAME, "{kind: Append}"))
    for day, some in enumerate((("1 a", "2 b"), ("3 c", "4 d")), start=1):
        feed(found, NAME, *some, day=day)
    set_visibility(found.storage.get(NAME).folder, Visibility.PUBLIC)
    return found


def last_slice(workspace: Workspace) -> Path:
    dataset = workspace.storage.get(NAME)
    event = [hashed.block.event for hashed in dataset.chain.in_order(dataset.state.head)][-1]
    assert isinstance(event, AddData)
    assert event.new_data
    path = dataset.layout.data.local_path(event.new_data.physical_hash)
    assert path
    return path


def replaced(workspace: Workspace, make: Any) -> Path:
    """Put another file in the place of the last slice, and let it pass for one that has the right hash."""
    path = last_slice(workspace)
    table = pq.read_table(path)
    path.chmod(0o644)
    path.write_bytes(make(table))
    workspace.storage.get(NAME).checked_files.add(Multihash.parse(path.name), path)
    return path


def as_utf8(table: pa.Table) -> bytes:
    data = packed(table.set_column(5, "name", [pa.array(["\x7f\x7f\x7f\x7f\x7f", "d"])]), use_dictionary=False)
    plain = io.BytesIO()
    pq.write_table(
        pq.read_table(io.BytesIO(data)), plain, compression="none", use_dictionary=False, write_statistics=False
    )
    return plain.getvalue().replace(b"\x7f\x7f\x7f\x7f\x7f", b"\xff\xfe\xff\xfe\xff")


def as_lists(table: pa.Table) -> bytes:
    return packed(table.set_column(4, "id", [pa.array([[1], [2]])]))


def as_fewer(table: pa.Table) -> bytes:
    return packed(table.slice(1))


@pytest.mark.parametrize("make", [as_utf8, as_lists, as_fewer])
def test_a_slice_that_is_not_what_it_should_be_is_named(workspace: Workspace, make: Any) -> None:
    path = replaced(workspace, make)
    said = rf"{NAME}, block \d+ \(f1620\w+\), data file {path.name}: "
    with pytest.raises(IntegrityError, match=said):
        workspace.tail(NAME)
    with (
        pytest.raises(IntegrityError, match=said),
        workspace.query_service.run(Query(f'select * from "{NAME}"')) as answer,
    ):
        answer.read_all()


def test_a_server_says_that_its_data_is_damaged(workspace: Workspace) -> None:
    replaced(workspace, as_utf8)
    with serving(workspace) as server:
        answer = ask(f"{server.url}/{NAME}/tail")
        assert (answer.status, answer.json["code"]) == (500, IntegrityError.code)
        assert str(workspace.root) not in str(answer.json)
        assert ask(f"{server.url}/health").status == 200


def test_a_bomb_is_read_apart_and_ends_there(workspace: Workspace) -> None:
    def large(table: pa.Table) -> bytes:
        name = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int8()), pa.array(["x" * (40 << 20)]))
        return packed(table.set_column(5, "name", [name]))

    path = replaced(workspace, large)
    assert path.stat().st_size < 100_000
    with serving(workspace) as server:
        for question in (f"{NAME}/tail", f'query?query=select+*+from+"{NAME}"'):
            answer = ask(f"{server.url}/{question}")
            assert answer.status == 400, answer
            assert "more than 33554432 bytes" in answer.json["message"]
        assert ask(f"{server.url}/{NAME}/tail?skip=2&limit=1").json["data"][0]["name"] == "b"
    with pytest.raises(ResultTooLarge), serving(workspace) as server:
        raise ResultTooLarge(ask(f"{server.url}/{NAME}/tail?limit=1").json["message"])


def test_values_that_take_no_bytes_are_counted(workspace: Workspace) -> None:
    columns = ", ".join(f"null as c{at}" for at in range(200))
    with serving(workspace, max_answer=100_000) as server:
        body = json.dumps({"query": f"select {columns} from generate_series(1, 1000)", "limit": 1000}).encode()
        answer = ask(f"{server.url}/query", method="POST", body=body, content_type="application/json")
        assert (answer.status, "more than 25000 values" in answer.body.decode()) == (400, True), answer


# --- Places that do not answer ---


@pytest.mark.parametrize("what", ["refs/head", "blocks", "data"])
def test_a_pipe_is_no_file(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "source"
    source = dataset_with(DatasetLayout.local(folder), packed(rows(3, pa.array(["a", "b", "c"]))), 0, 2)
    path = folder / what if what == "refs/head" else next((folder / what).iterdir())
    path.unlink()
    os.mkfifo(path)
    begin = time.monotonic()
    with pytest.raises(OdfError, match=r"it is not a regular file|has 0 bytes"):
        transfer(source, DatasetLayout.local(tmp_path / "target"))
    assert time.monotonic() - begin < 5


def test_links_to_devices_are_no_files_either(tmp_path: Path) -> None:
    source = dataset_with(DatasetLayout.local(tmp_path / "source"), packed(rows(3, pa.array(["a", "b", "c"]))), 0, 2)
    path = next((tmp_path / "source" / "data").iterdir())
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(OdfError, match="it is not a regular file"):
        transfer(source, DatasetLayout.local(tmp_path / "target"))


def test_a_source_that_trickles_is_given_up_whatever_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = dataset_with(DatasetLayout.local(tmp_path / "source"), packed(rows(3, pa.array(["a", "b", "c"]))), 0, 2)
    set_limits(TransferLimits(least_speed=100_000, window=1))

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            time.sleep(0.2)
            return super().read(1 if size else 0)

    monkeypatch.setattr(source.data, "open", lambda _name: Slow(bytes(10_000)))
    with pytest.raises(TransferError, match=r"\d+ bytes in 1 s is below the minimum speed of 100000 bytes/s"):
        transfer(source, DatasetLayout.local(tmp_path / "target"))


def test_pieces_of_one_dataset_serve_as_before(tmp_path: Path) -> None:
    found = workspace_at(tmp_path / "other")
    put(found, "com.example.any", 1, public=True)
    with serving(found) as server:
        assert ask(f"{server.url}/com.example.any/refs/head").status == 200
