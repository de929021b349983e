"""The stores of a dataset in buckets of S3 and of Google Cloud Storage, by real servers, and of Azure, by one of our own."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from fsspec.registry import _registry
from support.chains.small_datasets import add_slice, make_dataset
from support.fixtures import KAMU
from support.servers.azure import azure_containers, connection_string
from support.servers.buckets import BUCKETS, gcs_buckets, s3_buckets

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import HEAD, RefStore
from odfpy.chain.stores.side_files import SideFiles
from odfpy.data.multihash import Multihash
from odfpy.errors import ConcurrentUpdate, HashMismatch, TransferError
from odfpy.repository.bucket.client import PART, ListedObject, ListPage
from odfpy.repository.bucket.errors import BucketNotFound, StoreRefuses, StoreUnreachable
from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.repository.bucket.s3 import S3Client, _S3Upload
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import transfer
from odfpy.testing.object_store import ObjectStoreContract
from odfpy.testing.ref_store import RefStoreContract
from odfpy.testing.side_files import SideFilesContract

FIRST, SECOND, THIRD = (Multihash.of(text) for text in (b"first", b"second", b"third"))
AWS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_FOLDERS = itertools.count()


@pytest.fixture(scope="module")
def environment() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AWS.items():
            patch.setenv(name, value)
        yield patch


@pytest.fixture(scope="module")
def s3(environment: pytest.MonkeyPatch) -> Iterator[str]:
    """The beginning of the URLs of buckets."""
    with s3_buckets() as address:
        yield f"s3+http://{address}/"


@pytest.fixture(scope="module")
def gs(environment: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with gcs_buckets() as url:
        environment.setenv("STORAGE_EMULATOR_HOST", url)
        environment.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        yield "gs://"


@pytest.fixture(scope="module")
def az(environment: pytest.MonkeyPatch) -> Iterator[str]:
    with azure_containers(*BUCKETS) as settings:
        environment.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
        yield "az://"


@pytest.fixture(params=["s3", "gs", "az"])
def store(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(request.param))


def dataset(base: str, bucket: str = "data") -> DatasetLayout:
    """An empty dataset."""
    return open_dataset(f"{base}{bucket}/some folder/{next(_FOLDERS)}")


class InBucket:
    """Where the suites make their stores."""

    base: str

    def layout(self) -> DatasetLayout:
        return dataset(self.base)


class InS3(InBucket):
    @pytest.fixture(autouse=True)
    def _server(self, s3: str) -> None:
        self.base = s3


class InGcs(InBucket):
    @pytest.fixture(autouse=True)
    def _server(self, gs: str) -> None:
        self.base = gs


class InAzure(InBucket):
    @pytest.fixture(autouse=True)
    def _server(self, az: str) -> None:
        self.base = az


class Objects(ObjectStoreContract, InBucket):
    def make(self, folder: Path) -> ObjectStore:
        return self.layout().data


class References(RefStoreContract, InBucket):
    writers, rounds = 4, 5

    def make(self, folder: Path) -> RefStore:
        return self.layout().refs


class Beside(SideFilesContract, InBucket):
    many = 10

    def make(self, folder: Path) -> SideFiles:
        side = self.layout().side
        assert side is not None
        return side


class TestObjectsInS3(InS3, Objects): ...


class TestReferencesInS3(InS3, References): ...


class TestSideFilesInS3(InS3, Beside): ...


class TestObjectsInGcs(InGcs, Objects): ...


class TestReferencesInGcs(InGcs, References): ...


class TestSideFilesInGcs(InGcs, Beside): ...


class TestObjectsInAzure(InAzure, Objects): ...


class TestReferencesInAzure(InAzure, References): ...


class TestSideFilesInAzure(InAzure, Beside): ...


# --- Objects of several parts ---

LARGE = bytes(range(256)) * (2 * PART // 256)


@pytest.mark.parametrize("size", [PART, PART + 1, 2 * PART], ids=["one part", "a byte more", "two parts"])
def test_object_comes_and_goes_in_parts(store: str, size: int):
    data = LARGE[:size]
    objects = dataset(store).data
    name = objects.insert(data)
    assert objects.size(name) == size
    with objects.open(name) as stream:
        assert stream.read(10) == data[:10]
    assert objects.read(name) == data


def test_parts_of_what_has_a_wrong_hash_never_become_an_object(store: str):
    objects = dataset(store).data
    with pytest.raises(HashMismatch):
        objects.insert_stream(io.BytesIO(LARGE), FIRST)
    assert FIRST not in objects
    assert list(objects) == []


def test_what_else_lies_in_the_folders_is_passed_over(s3: str):
    import fsspec

    layout = dataset(s3)
    name = layout.data.insert(b"x")
    layout.refs.compare_and_swap(HEAD, None, FIRST)
    files = fsspec.filesystem("s3", endpoint_url=s3.removeprefix("s3+").rstrip("/"), skip_instance_cache=True)
    for place in (layout.data.describe(name).rpartition("/")[0], layout.refs.describe(HEAD).rpartition("/")[0]):
        folder = place.removeprefix(s3)
        for other in (".DS_Store", "deeper/file"):
            files.pipe(f"{folder}/{other}", b"x")
    assert list(layout.data) == [name]
    assert list(layout.refs.names()) == [HEAD]
    files.close_session(files.loop, files._s3)


# --- Two writers ---

_PUSHER = """
import sys
from pathlib import Path
from odfpy.chain.layout import DatasetLayout
from odfpy.errors import ConcurrentUpdate
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import transfer
met = []
def meet(done, total):  # the heads have been looked at, and files are on their way
    if not met:
        met.append(done)
        print("ready", flush=True)
        sys.stdin.readline()
try:
    transfer(DatasetLayout.local(Path(sys.argv[1])), open_dataset(sys.argv[2]), progress=meet)
except ConcurrentUpdate:
    print("lost", flush=True)
else:
    print("won", flush=True)
"""


@pytest.mark.parametrize("kind", ["s3", "gs"])
def test_of_two_pushing_processes_exactly_one_wins(kind: str, request: pytest.FixtureRequest, tmp_path: Path):
    url = f"{request.getfixturevalue(kind)}data/raced/{next(_FOLDERS)}"
    common = make_dataset(DatasetLayout.local(tmp_path / "0"), "what both have")
    transfer(common, open_dataset(url))
    shutil.copytree(tmp_path / "0", tmp_path / "1")
    pushers, heads = [], []
    for number in range(2):
        layout = DatasetLayout.local(tmp_path / str(number))
        add_slice(layout, f"of {number}".encode())
        heads.append(layout.refs.get(HEAD))
        command = [sys.executable, "-c", _PUSHER, str(tmp_path / str(number)), url]
        pushers.append(subprocess.Popen(command, stdin=-1, stdout=-1, text=True))
    try:
        assert [_line(pusher) for pusher in pushers] == ["ready", "ready"]
    finally:
        for pusher in pushers:
            if pusher.stdin:
                pusher.stdin.write("go\n")
                pusher.stdin.flush()
        outcomes = [_line(pusher) for pusher in pushers]
        for pusher in pushers:
            pusher.communicate(timeout=60)
    assert sorted(outcomes) == ["lost", "won"]
    remote = open_dataset(url)
    assert remote.refs.get(HEAD) == heads[outcomes.index("won")]
    assert remote.chain.state().num_records == 1


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_answer_that_is_lost_is_no_lost_race(s3: str):
    refs = dataset(s3, "lossy").refs
    refs.compare_and_swap(HEAD, None, FIRST)
    assert refs.get(HEAD) == FIRST
    refs.delete(HEAD, FIRST)
    assert refs.get(HEAD) is None


def test_object_arrives_although_answers_are_lost(s3: str):
    objects = dataset(s3, "lossy").data
    name = objects.insert(LARGE[: PART + 1])
    assert objects.size(name) == PART + 1


@pytest.mark.parametrize("size", [2 * PART, 2 * PART + 5])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_no_part_comes_twice_where_the_last_request_of_an_upload_breaks(
    s3: str, size: int, is_done: bool, monkeypatch: pytest.MonkeyPatch
):
    call, broken = S3Client.call, []

    async def breaking(self: S3Client, method: str, **arguments: Any) -> Any:
        if broken and is_done and "UploadId" in arguments:  # as stores of S3 say it; moto has another word for it
            answer = {"Error": {"Code": "NoSuchUpload"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
            raise ClientError(answer, method)
        if method != "complete_multipart_upload" or broken:
            return await call(self, method, **arguments)
        broken.append(method)
        if is_done:
            await call(self, method, **arguments)
        raise ConnectionResetError

    monkeypatch.setattr(S3Client, "call", breaking)
    objects, data = dataset(s3).data, os.urandom(size)
    name = objects.insert(data)
    assert objects.read(name) == data
    assert broken


@pytest.mark.parametrize("ahead", [-3600.0, 0.0, 3600.0])
@pytest.mark.parametrize("quiet", [30.0, 90.0])
def test_whether_an_upload_is_broken_off_is_told_by_the_clock_of_the_store(ahead: float, quiet: float):
    now = datetime.fromtimestamp(int(time.time() + ahead), timezone.utc)
    answers: dict[str, dict[str, Any]] = {
        "list_multipart_uploads": {
            "Uploads": [{"Key": "k", "UploadId": "theirs", "Initiated": now - timedelta(days=1)}]
        },
        "list_parts": {
            "Parts": [{"PartNumber": 1, "ETag": "e", "LastModified": now - timedelta(seconds=quiet)}],
            "ResponseMetadata": {"HTTPHeaders": {"date": format_datetime(now, usegmt=True)}},
        },
        "create_multipart_upload": {"UploadId": "new"},
    }

    class Client(S3Client):
        async def call(self, method: str, **arguments: Any) -> Any:
            return answers[method]

    upload = asyncio.run(Client("bucket", lambda **_: SimpleNamespace(loop=None)).begin("k"))
    assert cast("_S3Upload", upload)._upload["UploadId"] == ("theirs" if quiet > 60 else "new")


def test_upload_that_somebody_has_ended_is_told_as_such(s3: str, monkeypatch: pytest.MonkeyPatch):
    async def ended(self: S3Client, method: str, **arguments: Any) -> Any:
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, method)

    monkeypatch.setattr(S3Client, "tries", 1)
    monkeypatch.setattr(S3Client, "call", ended)
    upload = _S3Upload(S3Client("bucket", lambda **_: SimpleNamespace(loop=None)), {"Key": "k", "UploadId": "u"}, {})
    bucket = open_bucket(parse_bucket_url(f"{s3}data"))
    with pytest.raises(StoreUnreachable, match="NoSuchUpload"):
        bucket.demand("k", upload.part, b"x")


def test_store_that_overlooks_conditions_is_found_out_and_looked_at_again(s3: str):
    refs = dataset(s3, "careless").refs
    refs.compare_and_swap(HEAD, None, FIRST)
    refs.compare_and_swap(HEAD, FIRST, SECOND)
    assert refs._bucket._has_conditions is False  # type: ignore[attr-defined]
    with pytest.raises(ConcurrentUpdate):
        refs.compare_and_swap(HEAD, FIRST, THIRD)
    assert refs.get(HEAD) == SECOND


# --- What goes wrong ---


def every_request(layout: DatasetLayout) -> dict[str, Any]:
    return {
        "get": lambda: layout.refs.get(HEAD),
        "list": lambda: list(layout.refs.names()),
        "insert": lambda: layout.data.insert(b"x"),
        "swap": lambda: layout.refs.compare_and_swap(HEAD, None, FIRST),
    }


def test_bucket_that_is_not_there_is_named(store: str):
    for ask in every_request(dataset(store, "nowhere")).values():
        with pytest.raises(BucketNotFound, match=f"There is no bucket {re.escape(store)}nowhere$"):
            ask()


def test_bucket_that_may_only_be_read_says_so(store: str):
    requests = every_request(dataset(store, "readonly"))
    assert requests["get"]() is None
    assert requests["list"]() == []
    for name in ("insert", "swap"):
        with pytest.raises(StoreRefuses, match=f"^{re.escape(store)}readonly/.*: access denied") as caught:
            requests[name]()
        assert "come from" in (caught.value.hint or "")


def test_key_that_the_store_does_not_know(s3: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    for ask in every_request(dataset(s3)).values():
        with pytest.raises(StoreRefuses, match=r"access denied \(InvalidAccessKeyId\)"):
            ask()


def test_account_that_the_store_does_not_know(az: str, monkeypatch: pytest.MonkeyPatch):
    url = re.search("http://[^/]*", os.environ["AZURE_STORAGE_CONNECTION_STRING"])
    assert url
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(url[0], "stranger"))
    with pytest.raises(StoreRefuses, match="access denied"):
        dataset(az).refs.get(HEAD)


def test_without_credentials_a_bucket_is_read_as_somebody_unknown(
    s3: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    layout = dataset(s3)
    layout.refs.compare_and_swap(HEAD, None, FIRST)
    place = layout.refs.describe(HEAD).removesuffix("/refs/head")
    bucket = open_bucket(parse_bucket_url(place))
    key = layout.refs.describe(HEAD).removeprefix(f"{s3}data/")
    bucket.ask(key, bucket.client.call, "put_object_acl", Key=key, ACL="public-read")  # type: ignore[attr-defined]
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_dataset(place).refs.get(HEAD) == FIRST


def test_store_that_nobody_answers_for(environment: pytest.MonkeyPatch):
    with pytest.raises(StoreUnreachable, match=r"s3\+http://127.0.0.1:1/data/x/refs/head: the store cannot be reached"):
        open_dataset("s3+http://127.0.0.1:1/data/x").refs.get(HEAD)


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("s3://data/x", "s3fs", "s3"),
        ("s3+http://host:1/data/x", "s3fs", "s3"),
        ("gs://data/x", "gcsfs", "gcs"),
        ("az://data/x", "adlfs", "azure"),
    ],
)
def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str):
    for protocol in ("s3", "az"):
        monkeypatch.delitem(_registry, protocol, raising=False)
    for name in (module, f"{module}.core"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setenv("AWS_REGION", "nowhere")  # other settings, other connections
    with pytest.raises(TransferError) as caught:
        open_dataset(url)
    scheme = url.partition(":")[0]
    assert caught.value.message == (
        f"{scheme}:// repositories need the Python package {module}, which is not installed"
    )
    assert caught.value.hint == f"pip install 'opendatafabric[{extra}]'"


def test_settings_that_are_missing(monkeypatch: pytest.MonkeyPatch):
    for name in ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_NAME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TransferError, match="az://data cannot be used") as caught:
        open_dataset("az://data/x")
    assert "AZURE_STORAGE_CONNECTION_STRING" in (caught.value.hint or "")


# --- By the command line ---


def test_a_dataset_is_pushed_to_a_bucket_and_cloned_from_it(
    s3: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    from odfpy.cli.app import run

    monkeypatch.setenv("HOME", str(tmp_path))
    here, there = str(tmp_path / "here"), str(tmp_path / "there")
    for line in (
        ["init", here],
        ["-w", here, "pull", str(KAMU / "cities")],
        ["-w", here, "repo", "add", "bucket", f"{s3}data/shop"],
        ["-w", here, "push", "cities", "--to", "bucket"],
        ["clone", f"{s3}data/shop/cities", there],
        ["-w", there, "verify", "--all"],
        ["-w", here, "search", "CITIES"],
    ):
        assert run(line) == 0, capfd.readouterr().err
    assert "bucket/cities" in capfd.readouterr().out
    assert run(["-w", here, "push", "cities", "--to", f"{s3}readonly/"]) == 1
    assert run(["-w", here, "repo", "add", "other", f"{s3.replace('//', '//key:s3cr3t@')}data"]) == 2
    said = capfd.readouterr().err
    assert "(E611)" in said
    assert "s3cr3t" not in said


# --- Objects by their keys -------------------------------------------------------------------------------------------


def test_all_objects_below_a_key_are_listed_whatever_their_folders(store: str):
    place = parse_bucket_url(f"{store}data/keys {next(_FOLDERS)}")
    bucket = open_bucket(place)
    keys = [f"{place.folder}{name}" for name in ("a/data", "a/deeper/data", "b")]
    for key in keys:
        bucket.ask(key, bucket.client.put, key, b"hello")
    found = list(bucket.keys(place.folder))
    assert sorted((item.key, item.size) for item in found) == [(key, 5) for key in keys]
    head = bucket.ask(keys[0], bucket.client.head, keys[0])
    assert (head.size, dict(head.metadata)) == (5, {})
    assert abs(head.written - found[0].written) < 3600
    with pytest.raises(FileNotFoundError):
        bucket.ask("nothing", bucket.client.head, f"{place.folder}nothing")


def test_keys_of_a_bucket_that_is_not_there(store: str):
    bucket = open_bucket(parse_bucket_url(f"{store}nosuchbucket/x"))
    with pytest.raises(BucketNotFound):
        list(bucket.keys("x/"))


@pytest.mark.parametrize("folders", [True, False])
def test_a_store_that_repeats_a_page_is_not_asked_forever(
    store: str, monkeypatch: pytest.MonkeyPatch, folders: bool
) -> None:
    bucket = open_bucket(parse_bucket_url(f"{store}data/x"))

    async def same(*_: object, **__: object) -> ListPage:
        return ListPage([ListedObject("x/a", 1, 0.0, "v")], ["x/b/"], "token")

    monkeypatch.setattr(bucket, "client", SimpleNamespace(list=same, loop=bucket.client.loop, tries=1))
    with pytest.raises(TransferError, match="the same page repeatedly"):
        bucket.list("x/") if folders else list(bucket.keys("x/"))


def test_a_folder_of_a_bucket_has_a_limit(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = open_bucket(parse_bucket_url(f"{s3}data/x"))
    monkeypatch.setattr("odfpy.repository.bucket.client._MAX_LISTED", 5)
    tokens = map(str, itertools.count())

    async def more(*_: object, **__: object) -> ListPage:
        token = next(tokens)
        return ListPage([ListedObject(f"x/{token}", 1, 0.0, "v")], [], token)

    monkeypatch.setattr(bucket, "client", SimpleNamespace(list=more, loop=bucket.client.loop, tries=1))
    with pytest.raises(TransferError, match="more than 5 objects"):
        bucket.list("x/")
