"""Folders of tables in object stores: each store by a server on the loopback interface."""

from __future__ import annotations

import io
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from deltalake import write_deltalake
from support.servers.azure import azure_containers
from support.servers.buckets import gcs_buckets, s3_buckets

from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.sharing.checked import shared_files
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.model import SourceKind
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.parquet_files import footer
from odfpy.sharing.tables.remote import BucketFile, BucketFolder, store_url

ROWS = pa.table({"id": [1, 2, 3]})
SIGNATURES = {"s3": "X-Amz-Signature", "az": "sig", "gs": "X-Goog-Signature"}

OUTSIDE = (
    "../other/x.parquet",
    "a/../../other/x.parquet",
    "/etc/passwd",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "s3://data/other/x.parquet",
    "s3://data/t2/x.parquet",
    "s3://careless/t/x.parquet",
    "s3://data/t/../other/x.parquet",
    "gs://data/t/x.parquet",
    "s3+http://example.com/data/t/x.parquet",
    "s3://data/t/",
    "a//b",
    "",
)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with s3_buckets() as address:
        yield f"s3+http://{address}/data"


@pytest.fixture
def az(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with azure_containers("data") as settings:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
        yield "az://data"


@pytest.fixture
def gs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    with gcs_buckets() as url:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", url)
        monkeypatch.setenv("HOME", str(tmp_path))
        yield "gs://data"


@pytest.fixture(params=["s3", "az", "gs"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def put(url: str, data: bytes) -> None:
    place = parse_bucket_url(url)
    bucket, key = open_bucket(place), place.folder.rstrip("/")
    bucket.demand(key, bucket.client.put, key, data)


def parquet(rows: pa.Table = ROWS) -> bytes:
    stream = io.BytesIO()
    pq.write_table(rows, stream)
    return stream.getvalue()


def files_of(url: str) -> list[BucketFile]:
    table = open_files(SourceKind.PARQUET, url)
    found = [file.path for file in table.files(table.latest)]
    assert all(isinstance(one, BucketFile) for one in found)
    return [one for one in found if isinstance(one, BucketFile)]


def test_a_folder_of_parquet_files(store: str) -> None:
    for country in ("DE", "FR"):
        put(f"{store}/t/country={country}/a b+ü.parquet", parquet())
    put(f"{store}/t/_hidden/x.parquet", b"no file")
    put(f"{store}/t/notes.txt", b"passed over")
    put(f"{store}/table-beside/x.parquet", b"of another table")
    source = shared_files(SourceKind.PARQUET, f"{store}/t/")
    assert source.location == f"{store}/t"
    table = open_files(source.kind, source.location)
    assert table.schema(table.latest).names == ["id", "country"]
    assert [file.partition_values for file in table.files(table.latest)] == [{"country": "DE"}, {"country": "FR"}]
    (first, _) = files_of(f"{store}/t")
    url = first.presigned(60)
    if not store.startswith("gs"):  # whose emulator knows nobody, so that there is no key
        assert url is not None
        assert SIGNATURES[store[:2]] in parse_qs(urlsplit(url).query)
        with urllib.request.urlopen(url) as answer:
            assert answer.read() == parquet()


def test_a_file_that_is_written_anew_is_another(store: str) -> None:
    put(f"{store}/t/x.parquet", parquet())
    (before,) = files_of(f"{store}/t")
    put(f"{store}/t/x.parquet", parquet(pa.table({"id": [7, 8, 9]})))
    (after,) = files_of(f"{store}/t")
    assert before.size == after.size
    assert before.identity != after.identity


def test_footers_are_read_by_ranges_and_once(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(f"{s3}/t/x.parquet", parquet(pa.table({"id": range(200_000)})))
    asked: list[tuple[int, int]] = []
    read = BucketFile.read
    monkeypatch.setattr(
        BucketFile, "read", lambda file, start, end: asked.append((start, end)) or read(file, start, end)
    )
    (file,) = files_of(f"{s3}/t")
    assert footer(file).metadata.num_rows == 200_000
    assert sum(end - start for start, end in asked) < file.size / 2
    count = len(asked)
    (again,) = files_of(f"{s3}/t")
    footer(again)
    assert len(asked) == count


def test_google_signs_with_a_key_that_is_here(gs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = rsa.generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    account = {"type": "service_account", "client_email": "a@b", "token_uri": "http://127.0.0.1:9/", "project_id": "p"}
    path = tmp_path / "key.json"
    path.write_text(json.dumps({**account, "private_key": key.decode(), "private_key_id": "1"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(path))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    bucket = open_bucket(parse_bucket_url(gs))
    url = BucketFile("gs://data/x", 1, 0, "1", bucket, "folder/x").presigned(600)
    assert url is not None
    query = parse_qs(urlsplit(url).query)
    assert query["X-Goog-Expires"] == ["600"]
    assert {"X-Goog-Credential", "X-Goog-Signature"} <= query.keys()


def test_nobody_signs_without_a_key(s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    put(f"{s3}/t/x.parquet", parquet())
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    (file,) = files_of(f"{s3}/t")  # moto lets everybody read
    assert file.presigned(60) is None


def test_what_leads_out_of_the_folder_is_refused(s3: str) -> None:
    for name in ("t", "other", "t2"):
        put(f"{s3}/{name}/x.parquet", parquet())
    folder = BucketFolder(f"{s3}/t")
    assert folder.file("x.parquet") == folder.file("s3a://data/t/x.parquet") == folder.file(f"{s3}/t/x.parquet")
    for name in OUTSIDE:
        with pytest.raises(CannotShare, match="outside of its folder"):
            folder.file(name)


def test_urls_of_other_programs() -> None:
    assert store_url("s3a://lake/t/metadata/v1.json") == "s3://lake/t/metadata/v1.json"
    assert store_url("abfss://lake@account.dfs.core.windows.net/t/v1.json") == "az://lake/t/v1.json"
    assert store_url("s3+http://127.0.0.1:9000/lake/t") == "s3+http://127.0.0.1:9000/lake/t"
    assert store_url("/lake/t") is None
    assert store_url("file:///lake/t") is None


def test_a_store_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    with pytest.raises(CannotShare, match="cannot be reached"):
        shared_files(SourceKind.PARQUET, "s3+http://127.0.0.1:9/data/t")


def test_keys_do_not_belong_into_the_url() -> None:
    with pytest.raises(CannotShare, match="must not contain keys") as caught:
        shared_files(SourceKind.DELTA, "s3+http://key:secret@127.0.0.1:9/data/t")
    assert "secret" not in str(caught.value)


def test_a_delta_table_is_read_from_each_store(store: str, tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "country": ["DE", "FR", "DE"]})
    write_deltalake(tmp_path / "t", rows, partition_by=["country"])
    write_deltalake(tmp_path / "t", pa.table({"id": [4], "country": ["FR"]}), mode="append")
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            put(f"{store}/t/{path.relative_to(tmp_path / 't').as_posix()}", path.read_bytes())
    shared_files(SourceKind.DELTA, f"{store}/t")
    table = open_files(SourceKind.DELTA, f"{store}/t")
    for version, count in ((table.version(0), 3), (table.latest, 4)):
        files = list(table.files(version))
        assert {file.partition_values["country"] for file in files} == {"DE", "FR"}
        assert sum(footer(file.path).metadata.num_rows for file in files) == count
