"""Objects of stores: versions by ETag or time, read whole or not at all; S3 by a real server, the rest in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry
from support.ingest.fetching import NOW, Fetcher
from support.servers.server_process import s3_server

from odfpy.chain.sources import FetchUrl
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.ingest.fetch import FetchContext
from odfpy.ingest.fetch.download import download
from odfpy.ingest.fetch.object_store import ObjectSource
from odfpy.ingest.fetch.pending import PendingFile
from odfpy.ingest.source_state import etag_state

# --- S3 ---


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The store with an empty bucket `data`, and the environment that leads there."""
    for name, value in {
        "AWS_ENDPOINT_URL": s3_url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    store = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
    store.mkdir("data")
    yield store
    store.rm("data", recursive=True)
    store.close_session(store.loop, store._s3)


def test_object_is_fetched_once_for_each_version(run_fetch: Fetcher, bucket: Any):
    bucket.pipe("data/in/a b#1?.csv", b"x,y\n")
    step = FetchUrl("s3://data/in/a b#1?.csv")
    (file,) = run_fetch(step)
    info = bucket.info("data/in/a b#1?.csv")
    assert file.path.read_bytes() == b"x,y\n"
    assert file.state == etag_state(info["ETag"])
    assert file.event_time == Timestamp.from_datetime(info["LastModified"])
    assert run_fetch(step, state=file.state) == []
    bucket.pipe("data/in/a b#1?.csv", b"x,z\n")
    assert run_fetch(step, state=file.state)[0].path.read_bytes() == b"x,z\n"


def test_object_that_is_replaced_while_it_is_read_is_read_again(run_fetch: Fetcher, bucket: Any):
    bucket.pipe("data/a.csv", b"1" * 20_000_000)
    pending = [b"2" * 20_000_000]

    def replace(done: int, _: int | None) -> None:
        if done > 4_000_000 and pending:
            bucket.pipe("data/a.csv", pending.pop())

    (file,) = run_fetch(FetchUrl("s3://data/a.csv"), progress=replace)
    assert set(file.path.read_bytes()) == set(b"2")
    assert file.state == etag_state(bucket.info("data/a.csv")["ETag"])


@pytest.mark.parametrize("url", ["s3://data/none.csv", "s3://nowhere/none.csv"])
def test_missing_object(run_fetch: Fetcher, bucket: Any, url: str):
    with pytest.raises(FetchError, match=f"^{url}: there is no such object$"):
        run_fetch(FetchUrl(url))


def test_folder_is_no_object(run_fetch: Fetcher, bucket: Any):
    bucket.pipe("data/in/a.csv", b"x")
    with pytest.raises(FetchError, match="is not an object, but a folder"):
        run_fetch(FetchUrl("s3://data/in"))


def test_object_is_read_without_credentials_if_everybody_may(
    run_fetch: Fetcher, bucket: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    bucket.pipe_file("data/public.csv", b"x", ACL="public-read")
    bucket.pipe_file("data/private.csv", b"x")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run_fetch(FetchUrl("s3://data/public.csv"))[0].path.read_bytes() == b"x"
    with pytest.raises(FetchError, match="no permission to read it"):
        run_fetch(FetchUrl("s3://data/private.csv"))


def test_secrets_of_the_url_are_in_no_message(run_fetch: Fetcher, bucket: Any):
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchUrl("s3://data/${{ env.KEY }}.csv"), environment={"KEY": "s3cr3t"})
    assert caught.value.message == "s3://data/${{ env.KEY }}.csv: there is no such object"
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("url", "module", "extra"),
    [
        ("s3://data/a.csv", "s3fs", "s3"),
        ("gs://data/a.csv", "gcsfs", "gcs"),
        ("az://data/a.csv", "adlfs", "azure"),
        ("abfs://data@account.dfs.core.windows.net/a.csv", "adlfs", "azure"),
    ],
)
def test_missing_extra_is_named(run_fetch: Fetcher, monkeypatch: pytest.MonkeyPatch, url: str, module: str, extra: str):
    for protocol in ("s3", "gs", "az", "abfs"):
        monkeypatch.delitem(_registry, protocol, raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchUrl(url))
    scheme = url.partition(":")[0]
    assert caught.value.message == f"{scheme}: sources need the Python package {module}, which is not installed"
    assert caught.value.hint == f"pip install 'opendatafabric[{extra}]'"


def test_scheme_that_is_not_known(run_fetch: Fetcher):
    with pytest.raises(FetchError, match="unknown scheme gopher") as caught:
        run_fetch(FetchUrl("gopher://host/a.csv"))
    assert "http" in (caught.value.hint or "")


# --- Any store ---


@pytest.fixture
def store() -> Iterator[MemoryFileSystem]:
    memory = MemoryFileSystem()
    memory.pipe("/a.csv", b"0123456789" * 100)
    yield memory
    memory.rm("/a.csv")


@pytest.fixture
def fetch_from(tmp_path: Path) -> Callable[..., PendingFile | None]:
    def run(store: Any, **circumstances: Any) -> PendingFile | None:
        context = FetchContext(**{"now": NOW, "root": tmp_path, "scratch": tmp_path, "pause": print, **circumstances})
        return download(ObjectSource(store, "/a.csv", "memory:a.csv", now=context.now), "memory", context)

    return run


def test_object_without_etag_is_known_by_its_time(store: MemoryFileSystem, fetch_from):
    store.store["/a.csv"].created = datetime(2024, 3, 1, tzinfo=timezone.utc)
    file = fetch_from(store)
    assert file.path.read_bytes() == b"0123456789" * 100
    assert str(file.version.modified) == "2024-03-01T00:00:00Z"
    assert fetch_from(store, state=file.version.state) is None


def test_object_beyond_the_limit_is_not_begun(store: MemoryFileSystem, fetch_from):
    with pytest.raises(FetchError, match="1000 bytes are announced, 999 are allowed"):
        fetch_from(store, max_bytes=999)


class Lying(MemoryFileSystem):
    """Tells another size than it has."""

    protocol = "lying"

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size_told = size

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {**super().info(path), "size": self.size_told}


def test_object_that_is_shorter_than_announced_is_an_error(store: MemoryFileSystem, fetch_from):
    with pytest.raises(FetchInterrupted, match=r"interrupted after 1000 of 5000 bytes \(tried 4 times\)"):
        fetch_from(Lying(5000))


def test_object_that_is_longer_than_announced_is_an_error(store: MemoryFileSystem, fetch_from):
    with pytest.raises(FetchError, match="more than the 10 announced bytes"):
        fetch_from(Lying(10))


class Breaking(MemoryFileSystem):
    """Breaks off in the middle, some times; notes from where it is read."""

    protocol = "breaking"

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.begun: list[int] = []

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        return {**super().info(path), "ETag": '"v1"'}

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        outer, file = self, super().open(path)

        class Half:
            def seek(self, offset: int) -> None:
                outer.begun.append(offset)
                file.seek(offset)

            def read(self, size: int) -> bytes:
                if outer.times and file.tell() >= 500:
                    outer.times -= 1
                    raise TimeoutError
                return file.read(min(size, 250))

            def close(self) -> None: ...

        return Half()


class Refusing(MemoryFileSystem):
    """Refuses as the library of Azure does: with an error of its own that has the status."""

    protocol = "refusing"

    class HttpResponseError(Exception):
        status_code = 403

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        raise self.HttpResponseError("Signature did not match. String to sign used was s3cr3t")


def test_refusal_is_told_as_such_and_without_the_words_of_the_library(fetch_from):
    with pytest.raises(FetchError, match=r"^memory:a.csv: no permission to read it$") as caught:
        fetch_from(Refusing())
    assert caught.value.__cause__ is None


def test_libraries_do_not_log_to_the_terminal():
    program = (
        "import logging, odfpy.ingest.fetch.object_store; logging.getLogger('gcsfs.retry').error('out of retries')"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=120).stderr == b""


def test_reading_goes_on_where_it_broke_off(store: MemoryFileSystem, fetch_from):
    breaking = Breaking(2)
    assert fetch_from(breaking).path.read_bytes() == b"0123456789" * 100
    assert breaking.begun == [0, 500, 500]


def test_reading_is_given_up_in_the_end_and_goes_on_with_the_next_pull(store: MemoryFileSystem, fetch_from):
    breaking = Breaking(4)
    with pytest.raises(FetchInterrupted, match=r"cannot be read \(TimeoutError\) \(tried 4 times\)"):
        fetch_from(breaking)
    assert fetch_from(breaking).path.read_bytes() == b"0123456789" * 100
    assert breaking.begun == [0, 500, 500, 500, 500]
