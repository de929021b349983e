"""Tables of files in object stores over the protocol, with presigned urls of a real S3 server."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from serving.sharing.conftest import Shared
from serving.sharing.test_table_kinds import ROWS, rows_of
from support.processes.pandas_client import PandasClient
from support.servers.buckets import s3_buckets
from support.shared_tables import in_order

from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.sharing.checked import shared_files
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.model import SourceKind
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.remote import BucketFolder

TABLES = "shares/bucket/schemas/main/tables"
AWS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


def put(folder: Path, url: str) -> None:
    """Copy a folder into a bucket."""
    place = parse_bucket_url(url)
    bucket = open_bucket(place)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            key = place.folder + path.relative_to(folder).as_posix()
            bucket.demand(key, bucket.client.put, key, path.read_bytes())


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The URL of a bucket."""
    with pytest.MonkeyPatch.context() as patch, s3_buckets() as address:
        for name, value in AWS.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://{address}")
        yield "s3://data"


def iceberg(folder: Path, warehouse: str) -> Table:
    """A table of the library in a bucket, of a catalog in a folder."""
    properties = {"s3.endpoint": os.environ["AWS_ENDPOINT_URL"], "s3.region": "us-east-1"}
    keys = {"s3.access-key-id": "key", "s3.secret-access-key": "secret"}
    catalog = SqlCatalog("tests", uri=f"sqlite:///{folder}/catalog.db", warehouse=warehouse, **properties, **keys)
    catalog.create_namespace("eu")
    table = catalog.create_table("eu.people", ROWS.schema)
    table.append(ROWS)
    catalog.engine.dispose()
    return table


@pytest.fixture(scope="module")
def bucket(shared: Shared, store: str, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """The same rows as tables of each kind in a bucket, for `all_rows` and for `some_rows`."""
    folder = tmp_path_factory.mktemp("tables")
    pq.write_to_dataset(ROWS, folder / "parquet", partition_cols=["country"])
    write_deltalake(folder / "delta", ROWS, partition_by=["country"])
    put(folder, f"{store}/tables")
    places = {kind: f"{store}/tables/{kind.value}" for kind in (SourceKind.PARQUET, SourceKind.DELTA)}
    places[SourceKind.ICEBERG] = iceberg(folder, f"{store}/tables/iceberg").metadata_location
    shared.sharing.shares.add_share("bucket")
    for kind, place in places.items():
        shared.sharing.shares.add_table(SharePath("bucket", "main", kind.value), shared_files(kind, place))
    shared.recipient("all_rows", path=SharePath("bucket"))
    shared.recipient("some_rows", path=SharePath("bucket"), rows="country = 'DE'")
    return shared


KINDS = ["parquet", "delta", "iceberg"]


def urls(shared: Shared, kind: str, who: str) -> list[str]:
    return [line["file"]["url"] for line in shared.lines(f"{TABLES}/{kind}/query", who, {})[2:]]


@pytest.mark.parametrize("kind", KINDS)
def test_what_shows_as_a_whole_goes_out_by_the_store(bucket: Shared, kind: str) -> None:
    found = urls(bucket, kind, "all_rows")
    assert found
    for url in found:
        query = parse_qs(urlsplit(url).query)
        assert urlsplit(url).netloc == urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc
        assert 3500 < int(query["X-Amz-Expires"][0]) <= 3600
        assert "X-Amz-Signature" in query
        assert "secret" not in url
    rows = rows_of(bucket, bucket.lines(f"{TABLES}/{kind}/query", "all_rows", {}))
    assert rows == in_order({name: row[name] for name in rows[0]} for row in ROWS.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_who_sees_some_rows_gets_no_url_of_the_store(bucket: Shared, kind: str) -> None:
    found = urls(bucket, kind, "some_rows")
    assert found
    assert all(url.startswith(f"{bucket.url}/files/") for url in found)
    rows = rows_of(bucket, bucket.lines(f"{TABLES}/{kind}/query", "some_rows", {}))
    assert {row["id"] for row in rows} == {1, 3}


def test_a_presigned_url_ends(bucket: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(bucket.app.state._state, "sharing", replace(bucket.app.state.sharing, url_lifetime=1))
    (url, *_) = urls(bucket, "parquet", "all_rows")
    assert parse_qs(urlsplit(url).query)["X-Amz-Expires"] == ["1"]
    assert bucket.ask(url, None).status == 200


@pytest.fixture
def unsigned(bucket: Shared, monkeypatch: pytest.MonkeyPatch) -> Shared:
    """The same with `sharing.presigned: false`."""
    monkeypatch.setitem(bucket.app.state._state, "sharing", replace(bucket.app.state.sharing, is_presigned=False))
    return bucket


@pytest.mark.parametrize("kind", KINDS)
def test_without_presigned_urls_the_server_hands_the_file_on(unsigned: Shared, kind: str) -> None:
    (url, *_) = urls(unsigned, kind, "all_rows")
    assert url.startswith(f"{unsigned.url}/files/")
    whole = unsigned.ask(url, None)
    assert whole.status == 200
    assert pq.read_table(io.BytesIO(whole.body)).num_rows
    part = unsigned.ask(url, None, Range="bytes=4-7")
    assert (part.status, part.body) == (206, whole.body[4:8])
    assert part.headers["content-range"] == f"bytes 4-7/{len(whole.body)}"
    assert unsigned.ask(url, None, Range="bytes=-4").body == b"PAR1"
    assert unsigned.ask(url, None, Range=f"bytes={len(whole.body)}-").status == 416
    assert unsigned.ask(url, None, Range="bytes=-").body == whole.body
    head = unsigned.ask(url, None, method="HEAD")
    assert (head.status, head.headers["content-length"]) == (200, str(len(whole.body)))


def test_a_url_of_the_server_ends_with_the_grant(unsigned: Shared) -> None:
    unsigned.recipient("former", path=SharePath("bucket"))
    (url, *_) = urls(unsigned, "parquet", "former")
    assert unsigned.ask(url, None).status == 200
    unsigned.sharing.principals.remove("former")
    assert unsigned.ask(url, None).status == 403


def test_an_empty_folder_is_refused(store: str) -> None:
    with pytest.raises(CannotShare, match="nothing in the folder"):
        shared_files(SourceKind.PARQUET, f"{store}/none")


def test_a_bucket_that_is_not_there_is_refused(store: str) -> None:
    with pytest.raises(CannotShare, match="no bucket"):
        shared_files(SourceKind.PARQUET, "s3://nothing-here/at")


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_pandas_reads_from_the_store(
    bucket: Shared, pandas: PandasClient, tmp_path: Path, kind: str, use_delta_format: bool
) -> None:
    profile = bucket.profile("all_rows", tmp_path)
    options = {"use_delta_format": use_delta_format}
    rows = pandas.ask("rows", profile=profile, share="bucket", table=kind, options=options)
    assert in_order(rows) == in_order({name: row[name] for name in rows[0]} for row in ROWS.to_pylist())


@pytest.mark.parametrize(
    "path",
    [
        "../secret.parquet",
        "s3://careless/secret.parquet",
        "s3://data/secret.parquet",
        "file:///etc/passwd",
        "/etc/passwd",
    ],
)
def test_a_log_that_leads_elsewhere_is_refused(store: str, tmp_path: Path, path: str) -> None:
    write_deltalake(tmp_path / "table", ROWS)
    pq.write_table(ROWS, tmp_path / "secret.parquet")
    put(tmp_path, store)
    commit = tmp_path / "table" / "_delta_log" / f"{0:020}.json"
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["path"] = path
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    put(tmp_path / "table" / "_delta_log", f"{store}/table/_delta_log")
    with pytest.raises(CannotShare, match=r"outside|absolute"):
        shared_files(SourceKind.DELTA, f"{store}/table")


def test_versions_of_a_delta_table_as_they_come(bucket: Shared, store: str, tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path / "table", ROWS.slice(number, 1), mode="append")
        put(tmp_path / "table", f"{store}/growing")
        table = open_files(SourceKind.DELTA, f"{store}/growing")
        assert table.latest.number == number
        assert len(list(table.files(table.latest))) == number + 1
    assert len(list(table.changes(table.version(1), table.latest))) == 2


def test_metadata_that_lead_elsewhere_are_refused(bucket: Shared, store: str, tmp_path: Path) -> None:
    metadata = json.loads(object_at(iceberg(tmp_path, f"{store}/hostile").metadata_location))
    for place in ("s3://careless/x.avro", "file:///etc/passwd", f"{store}/hostile/../secret", "/etc/passwd"):
        metadata["snapshots"][0]["manifest-list"] = place
        (tmp_path / "copy").mkdir(exist_ok=True)
        (tmp_path / "copy" / "v9.metadata.json").write_text(json.dumps(metadata))
        put(tmp_path / "copy", f"{store}/hostile/metadata")
        with pytest.raises(CannotShare, match="outside of its folder"):
            shared_files(SourceKind.ICEBERG, f"{store}/hostile/metadata/v9.metadata.json")


def object_at(url: str) -> bytes:
    folder, _, name = url.rpartition("/")
    file = BucketFolder(folder).file(name)
    return file.read(0, file.size)
