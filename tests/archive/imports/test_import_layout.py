"""The import of a bucket of datalake: with ids, words and times, verified while it comes, again and again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.servers.buckets import s3_buckets

from odfpy.archive.errors import WrongContent
from odfpy.archive.imports.layout import import_layout
from odfpy.archive.imports.objects import BucketObjects, FolderObjects, ObjectSource
from odfpy.archive.imports.outcome import Imported, ImportLimits, ImportOutcome, PushedBatch
from odfpy.errors import TransferError
from odfpy.repository.bucket.errors import BucketNotFound, StoreRefuses
from odfpy.testing.archives import FolderArchive

IMPORTED, KNOWN, SKIPPED, REFUSED = ImportOutcome
DAY = 24 * 3600 * 1000


def hash_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def metadata(data: bytes, **fields: Any) -> dict[str, Any]:
    id_ = hash_of(b"id of " + data)
    return {
        "version": 0,
        "start": 1437375600000,
        "end": None,
        "path": f"/var/log/{data.decode()}",
        "work_id": None,
        "where": "nebraska",
        "what": "nginx",
        "id": id_,
        "hash": hash_of(data),
    } | fields


class Lake:
    """A bucket of datalake."""

    def __init__(self, address: str, name: str) -> None:
        import boto3

        self.url = f"s3+http://{address}/{name}"
        self.name = name
        self._s3 = boto3.client("s3", endpoint_url=f"http://{address}", region_name="us-east-1")
        self._s3.create_bucket(Bucket=name)

    def put(self, key: str, data: bytes, about: Any = None) -> None:
        given = {} if about is None else {"datalake": about if isinstance(about, str) else json.dumps(about)}
        self._s3.put_object(Bucket=self.name, Key=key, Body=data, Metadata=given)

    def push(self, data: bytes, **fields: Any) -> dict[str, Any]:
        about = metadata(data, **fields)
        self.put(f"{about['id']}/data", data, about)
        return about

    def written(self, key: str) -> int:
        return int(self._s3.head_object(Bucket=self.name, Key=key)["LastModified"].timestamp() * 1000)

    def objects(self, folder: str = "") -> BucketObjects:
        return BucketObjects(f"{self.url}/{folder}" if folder else self.url)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "MOTO_S3_DEFAULT_MAX_KEYS": "5",  # of a page
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }.items():
            patch.setenv(name, value)
        with s3_buckets() as found:
            yield found


@pytest.fixture
def lake(address: str, request: pytest.FixtureRequest) -> Lake:
    return Lake(address, f"lake-{hash_of(request.node.name.encode())}")


@pytest.fixture
def store(tmp_path: Path) -> FolderArchive:
    return FolderArchive(tmp_path / "archive")


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def imported(store: FolderArchive, source: ObjectSource, scratch: Path, **options: Any) -> list[Imported]:
    found = list(import_layout(store, source, scratch, **options))
    assert list(scratch.iterdir()) == []  # copies are gone
    return found


def outcomes(found: list[Imported]) -> list[ImportOutcome]:
    return [one.outcome for one in found]


def export(tmp_path: Path, *records: dict[str, Any]) -> Path:
    (tmp_path / "export").write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path / "export"


# --- By what objects say of themselves -------------------------------------------------------------------------------


def test_objects_come_with_their_ids_words_and_times(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    about = lake.push(b"hello", end=1437375700000, work_id="job-1")
    (one,) = imported(store, lake.objects(), scratch)
    record = store.get(about["id"])
    assert record.metadata() == about
    assert record.create_time == lake.written(f"{about['id']}/data")
    with store.open(record) as stream:
        assert stream.read() == b"hello"
    assert (one.outcome, one.url, one.size) == (IMPORTED, store.url(record), 5)
    assert one.name == f"{lake.url}/{about['id']}/data"


def test_the_older_layout_is_known_too(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    about = metadata(b"old")
    lake.put(f"d-nebraska/nginx/1437375600000/{about['id']}-nginx-523.txt", b"old", about)
    assert outcomes(imported(store, lake.objects(), scratch)) == [IMPORTED]
    assert store.get(about["id"]).metadata() == about


def test_an_import_again_fetches_nothing(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    about = [lake.push(b"%d" % number) for number in range(3)]
    old = metadata(b"old")
    lake.put(f"p/nginx/1437375600000/{old['id']}-x", b"old", old)
    assert outcomes(imported(store, lake.objects(), scratch)) == [IMPORTED] * 4
    lake.put(f"{about[0]['id']}/data", b"replaced, and nobody looks at it")
    lake.push(b"new")
    source = lake.objects()
    assert sorted(outcomes(imported(store, source, scratch)), key=list(ImportOutcome).index) == [IMPORTED, *[KNOWN] * 4]


def test_a_large_object_comes_in_parts(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    data = b"0123456789abcdef" * (12 << 16)
    about = metadata(b"large", hash=hash_of(data))
    lake.put(f"{about['id']}/data", data, about)
    lake.push(b"")
    assert outcomes(imported(store, lake.objects(), scratch)) == [IMPORTED] * 2
    assert store.get(about["id"]).size == len(data)


def test_more_objects_than_one_page_lists(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    for number in range(12):
        lake.put(f"x/{number}", b"")
    lake.push(b"hello")
    found = imported(store, lake.objects(), scratch, limits=ImportLimits(parallel=2))
    assert (outcomes(found).count(SKIPPED), outcomes(found).count(IMPORTED)) == (12, 1)


def test_many_are_one_commit_within_limits(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    for number in range(7):
        lake.push(b"%d" % number)
    pushes: list[PushedBatch] = []
    imported(store, lake.objects(), scratch, limits=ImportLimits(files=3), on_push=pushes.append)
    assert store.commits == [3, 3, 1]
    assert [len(push.results) for push in pushes] == [3, 3, 1]


@pytest.mark.parametrize(
    ("data", "about", "told"),
    [
        (b"damaged", metadata(b"hello"), hash_of(b"damaged")),
        (b"damaged", metadata(b"hello"), hash_of(b"hello")),
        (b"hello", metadata(b"hello", what="A"), "what 'A'"),
        (b"hello", metadata(b"hello", hash=None), "hash is missing"),
        (b"hello", metadata(b"hello", id=None), "id is missing"),
        (b"hello", metadata(b"hello", id="another"), "the id another"),
        (b"hello", metadata(b"hello", version=1), "version"),
        (b"hello", "{", "not JSON"),
        (b"hello", None, "no metadata"),
    ],
)
def test_what_is_wrong_is_refused_and_others_come(
    lake: Lake, store: FolderArchive, scratch: Path, data: bytes, about: Any, told: str
) -> None:
    lake.put(f"{hash_of(b'id of hello')}/data", data, about)
    good = lake.push(b"good")
    pushes: list[PushedBatch] = []
    found = {one.outcome: one for one in imported(store, lake.objects(), scratch, on_push=pushes.append)}
    assert found.keys() == {IMPORTED, REFUSED}
    assert [len(push.results) for push in pushes] == [1]  # what is wrong does not even come to the archive
    error = found[REFUSED].error
    assert error is not None
    assert told in error.message
    assert isinstance(error, WrongContent) == (data == b"damaged")
    assert [record.id for record in store.records()] == [good["id"]]


def test_what_is_not_of_datalake_is_skipped(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    lake.put("readme.txt", b"hello")
    lake.put("folder/", b"")
    (one,) = imported(store, lake.objects(), scratch)
    assert one.outcome is SKIPPED


def test_only_a_folder_of_the_bucket(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    lake.push(b"elsewhere")
    about = metadata(b"here")
    lake.put(f"d-x/nginx/1/{about['id']}-x", b"here", about)
    assert outcomes(imported(store, lake.objects("d-x"), scratch)) == [IMPORTED]


def test_a_dry_run_fetches_and_pushes_nothing(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    lake.push(b"good")
    lake.put(f"{'0' * 32}/data", b"bad", "{")
    found = imported(store, lake.objects(), scratch, limits=ImportLimits(dry_run=True))
    assert set(outcomes(found)) == {IMPORTED, REFUSED}
    assert list(store.records()) == []
    assert store.commits == []


def test_a_bucket_that_is_not_there_is_told(address: str, store: FolderArchive, scratch: Path) -> None:
    with pytest.raises(BucketNotFound):
        imported(store, BucketObjects(f"s3+http://{address}/nowhere-at-all"), scratch)


def test_a_store_that_does_not_answer_ends_the_import(store: FolderArchive, scratch: Path) -> None:
    with pytest.raises(TransferError):
        imported(store, BucketObjects("s3+http://127.0.0.1:1/lake"), scratch)


def test_what_was_pushed_stays_when_the_archive_breaks(lake: Lake, store: FolderArchive, scratch: Path) -> None:
    for number in range(4):
        lake.push(b"%d" % number)
    push_all = store.push_all

    def once(files: Any) -> Any:
        store.push_all = broken  # type: ignore[method-assign]
        return push_all(files)

    def broken(files: Any) -> Any:
        raise TransferError("the archive is away")

    store.push_all = once  # type: ignore[method-assign]
    with pytest.raises(TransferError):
        list(import_layout(store, lake.objects(), scratch, limits=ImportLimits(files=2)))
    assert list(scratch.iterdir()) == []
    store.push_all = push_all  # type: ignore[method-assign]
    found = imported(store, lake.objects(), scratch)
    assert sorted(outcomes(found), key=list(ImportOutcome).index) == [IMPORTED, IMPORTED, KNOWN, KNOWN]


# --- By an export of the index ---------------------------------------------------------------------------------------


def record(lake_url: str, key: str, about: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"url": f"s3://lake/{key}", "metadata": about, "create_time": 123456, "time_index_key": "1:x"} | fields


def test_the_records_say_which_objects_come_and_what_they_are(
    lake: Lake, store: FolderArchive, scratch: Path, tmp_path: Path
) -> None:
    about = metadata(b"hello", what="renamed")
    lake.put(f"{about['id']}/data", b"hello")  # an object that says nothing itself
    lake.push(b"not named")
    days = [record(lake.url, f"{about['id']}/data", about, time_index_key=f"{day}:x") for day in range(3)]
    found = imported(store, lake.objects(), scratch, records=export(tmp_path, *days))
    assert outcomes(found) == [IMPORTED]  # once, not for each day
    (one,) = store.records()
    assert (one.metadata(), one.create_time) == (about, 123456)
    assert outcomes(imported(store, lake.objects(), scratch, records=export(tmp_path, *days))) == [KNOWN]


def test_records_of_what_is_not_there_or_of_another_size_are_refused(
    lake: Lake, store: FolderArchive, scratch: Path, tmp_path: Path
) -> None:
    here, gone = metadata(b"here"), metadata(b"gone")
    lake.put("here", b"here")
    records = [record(lake.url, "here", here, size=5), record(lake.url, "gone", gone), {"url": 5}]
    found = imported(store, lake.objects(), scratch, records=export(tmp_path, *records))
    assert outcomes(found) == [REFUSED] * 3
    told = " ".join(one.error.message for one in found if one.error)
    assert "has 4 bytes, and its record says 5" in told
    assert "Missing object" in told


def test_an_id_that_has_other_bytes_in_the_archive_is_refused_with_both_hashes(
    lake: Lake, store: FolderArchive, scratch: Path, tmp_path: Path
) -> None:
    about = lake.push(b"hello")
    imported(store, lake.objects(), scratch)
    other = record(lake.url, f"{about['id']}/data", about | {"hash": "0" * 32})
    (one,) = imported(store, lake.objects(), scratch, records=export(tmp_path, other))
    assert one.outcome is REFUSED
    assert one.error is not None
    assert about["hash"] in one.error.message
    assert "0" * 32 in one.error.message


def test_a_folder_may_be_a_copy_of_the_bucket(store: FolderArchive, scratch: Path, tmp_path: Path) -> None:
    about, outside = metadata(b"hello"), metadata(b"outside")
    copy = tmp_path / "copy"
    (copy / about["id"]).mkdir(parents=True)
    (copy / about["id"] / "data").write_bytes(b"hello")
    (tmp_path / "outside").write_bytes(b"outside")
    (copy / "link").symlink_to(tmp_path / "outside")
    records = [
        record("", f"{about['id']}/data", about),
        record("", "../outside", outside),
        record("", "link", outside | {"id": "2"}),
        record("", "nothing", outside | {"id": "3"}),
    ]
    found = imported(store, FolderObjects(copy), scratch, records=export(tmp_path, *records))
    assert outcomes(found) == [*[REFUSED] * 3, IMPORTED]
    assert [one.id for one in store.records()] == [about["id"]]


def test_what_was_fetched_before_an_error_is_pushed(
    lake: Lake, store: FolderArchive, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the next try fetches all of it again, up to the same object."""
    for number in range(3):
        lake.push(b"%d" % number)
    source = lake.objects()
    head, seen = source.head, []

    def failing(key: str) -> Any:
        seen.append(key)
        if len(seen) == 3:
            raise TransferError("the store is away")
        return head(key)

    monkeypatch.setattr(source, "head", failing)
    with pytest.raises(TransferError):
        imported(store, source, scratch, limits=ImportLimits(parallel=1))
    assert len(list(store.records())) == 2


def test_an_object_that_may_not_be_read_is_refused_alone(
    lake: Lake, store: FolderArchive, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, _ = lake.push(b"closed"), lake.push(b"open")
    source = lake.objects()
    head = source.head

    def refusing(key: str) -> Any:
        if closed["id"] in key:
            raise StoreRefuses("access denied")
        return head(key)

    monkeypatch.setattr(source, "head", refusing)
    assert set(outcomes(imported(store, source, scratch))) == {IMPORTED, REFUSED}
