"""Where files may be: folders, patterns, object stores; what is not read."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.servers.azure import azure_containers
from support.servers.buckets import gcs_buckets, s3_buckets

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import QueryCancelled
from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.connections import FilesConnection
from odfpy.federation.sources.files import FilesSource
from odfpy.repository.bucket.location import open_bucket, parse_bucket_url

COUNT = ('SELECT count("id") AS "n", sum("id") AS "s" FROM "t"', pa.schema([("n", pa.int64()), ("s", pa.int64())]))


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_buckets() as address:
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        yield f"s3+http://{address}/data"


@pytest.fixture(scope="module")
def az() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, azure_containers("data") as settings:
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
        yield "az://data"


@pytest.fixture(scope="module")
def gs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, gcs_buckets() as url:
        patch.setenv("STORAGE_EMULATOR_HOST", url)
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield "gs://data"


@pytest.fixture(params=["s3", "az", "gs"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def put(url: str, data: bytes) -> None:
    place = parse_bucket_url(url)
    bucket, key = open_bucket(place), place.folder.rstrip("/")
    bucket.demand(key, bucket.client.put, key, data)


def parquet(*numbers: int) -> bytes:
    stream = io.BytesIO()
    pq.write_table(pa.table({"id": pa.array(numbers, pa.int64())}), stream)
    return stream.getvalue()


def over(location: str, scratch: Path, **more: Any) -> FilesSource:
    options = {name: more.pop(name) for name in ("forbidden", "most_copied") if name in more}
    tree = {"kind": "files", "tables": {"t": {"location": location, **more}}}
    connection = FilesConnection.model_validate(tree)
    return FilesSource("files", connection, copies=scratch / "copies", memory=1 << 30, **options)


def counted(source: FilesSource) -> tuple[int, int]:
    (row,) = source.read(*COUNT).read_all().to_pylist()
    return row["n"], row["s"]


def test_files_of_object_stores_are_copied_once_for_each_version(store: str, tmp_path: Path) -> None:
    put(f"{store}/one/x.parquet", parquet(1, 2))
    put(f"{store}/one/y.parquet", parquet(3))
    put(f"{store}/one/deeper/z.parquet", parquet(4))
    put(f"{store}/one/notes.txt", b"no rows")
    put(f"{store}/csv/a.csv", b"id\n5\n")
    assert counted(over(f"{store}/one", tmp_path, format="parquet")) == (4, 10)
    assert counted(over(f"{store}/one/x.parquet", tmp_path)) == (2, 3)
    assert counted(over(f"{store}/one/*.parquet", tmp_path)) == (3, 6)
    assert counted(over(f"{store}/csv/a.csv", tmp_path)) == (1, 5)
    copies = sorted((tmp_path / "copies").iterdir())
    assert len(copies) == 4
    before = [one.stat().st_ino for one in copies]
    assert counted(over(f"{store}/one", tmp_path, format="parquet")) == (4, 10)
    assert [one.stat().st_ino for one in sorted((tmp_path / "copies").iterdir())] == before
    put(f"{store}/one/x.parquet", parquet(100, 200, 300))
    assert counted(over(f"{store}/one", tmp_path, format="parquet")) == (5, 607)


def test_what_is_too_large_or_not_there_in_a_store(s3: str, tmp_path: Path) -> None:
    put(f"{s3}/two/x.parquet", parquet(*range(1000)))
    for source, says in (
        (over(f"{s3}/two/x.parquet", tmp_path, most_copied=100), "has more than 100 bytes"),
        (over(f"{s3}/nothing", tmp_path, format="parquet"), "There is nothing in the folder"),
        (over(f"{s3}/two/y.parquet", tmp_path), "there are no files"),
    ):
        with pytest.raises(SourceFailed) as caught:
            source.read(*COUNT).read_all()
        assert says in caught.value.detail
    control = CancellationToken()
    control.cancel()
    with pytest.raises(QueryCancelled):
        over(f"{s3}/two/x.parquet", tmp_path / "other").read(*COUNT, cancelled=control)
    assert not list((tmp_path / "other").rglob("*.*")), "nothing half copied is left"


def test_copies_that_nobody_uses_go(s3: str, tmp_path: Path) -> None:
    old = tmp_path / "copies" / "old"
    old.parent.mkdir()
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    put(f"{s3}/three/x.parquet", parquet(1))
    assert counted(over(f"{s3}/three/x.parquet", tmp_path)) == (1, 1)
    assert not old.exists()


def test_folders_and_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "below").mkdir(parents=True)
    for name, number in (("a.csv", 1), ("b.csv", 2), (".hidden.csv", 4), ("_x.csv", 8), ("below/c.csv", 16)):
        (folder / name).write_text(f"id\n{number}\n")
    (folder / "d.txt").write_text("nothing")
    assert counted(over(str(folder), tmp_path, format="csv")) == (3, 19)
    assert counted(over(f"{folder}/*.csv", tmp_path)) == (2, 3)
    assert counted(over(f"{folder}/a.csv", tmp_path)) == (1, 1)
    (folder / "new.csv").write_text("id\n32\n")
    assert counted(over(str(folder), tmp_path, format="csv")) == (4, 51), "files are those of now"


def test_ways_to_write_csv(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text('1;"a\nb"\n;\n2;""\n')
    columns = {"id": "Int64", "text": "Utf8"}
    source = over(f"{tmp_path}/x.csv", tmp_path, delimiter=";", header=False, columns=columns)
    wanted = pa.schema([("id", pa.int64()), ("text", pa.string())])
    found = source.read('SELECT "id", "text" FROM "t"', wanted).read_all().to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, "a\nb"), (None, None), (2, "")]


def test_columns_of_json_that_have_no_type_there(tmp_path: Path) -> None:
    (tmp_path / "x.ndjson").write_text('{"d": "2024-02-29", "n": 1.5, "more": [1]}\n{"d": null}\n')
    columns = {"d": "Date32", "n": "Decimal128(5, 2)", "none": "Utf8"}
    source = over(f"{tmp_path}/x.ndjson", tmp_path, columns=columns)
    assert [str(one.type) for one in source.schema('SELECT * FROM "t"')] == [
        "date32[day]",
        "decimal128(5, 2)",
        "string",
    ]


@pytest.mark.parametrize("link", [False, True])
def test_nothing_of_a_forbidden_folder_is_read(tmp_path: Path, link: bool) -> None:
    (tmp_path / ".odf").mkdir()
    (tmp_path / ".odf" / "x.csv").write_text("id\n1\n")
    place = tmp_path / ".odf" / "x.csv"
    if link:
        (tmp_path / "y.csv").symlink_to(place)
        place = tmp_path / "y.csv"
    with pytest.raises(SourceFailed) as caught:
        over(str(place), tmp_path, forbidden=tmp_path / ".odf").read(*COUNT)
    assert "which relays cannot share" in caught.value.detail


def test_a_query_reaches_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id\n1\n")
    (tmp_path / "secret.csv").write_text("id\n2\n")
    source = over(f"{tmp_path}/x.csv", tmp_path)
    for sql in (f"SELECT * FROM '{tmp_path}/secret.csv'", "SELECT pg_read_file('/etc/passwd') AS \"n\""):
        with pytest.raises(SourceFailed):
            source.read(sql, pa.schema([("n", pa.int64())])).read_all()


def test_a_damaged_file(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"PAR1" + b"x" * 100 + b"PAR1")
    with pytest.raises(SourceFailed) as caught:
        over(f"{tmp_path}/x.parquet", tmp_path).read(*COUNT).read_all()
    assert "x.parquet" not in caught.value.message
    assert "x.parquet" in caught.value.detail
