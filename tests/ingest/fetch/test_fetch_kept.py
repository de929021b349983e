"""What was fetched and not committed is kept: used again if the source says that it is still right, else never."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.ingest.fetching import NOW, Fetcher
from support.servers.static_server import StaticServer, cut_after, send, static_server

from odfpy.chain.sources import CacheForever, FetchUrl, RequestHeader
from odfpy.data.timestamp import NANOS_PER_SECOND, Timestamp
from odfpy.errors import FetchError
from odfpy.ingest.fetch.pending import PendingFile
from odfpy.ingest.fetch.version import SourceVersion
from odfpy.ingest.source_state import etag_state

OLD = "Fri, 01 Mar 2024 12:00:00 GMT"
BODY = b"0123456789" * 100
HOUR = 3600 * NANOS_PER_SECOND


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as site:
        yield site


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "kept"


def versioned(body: bytes, **headers: str) -> Callable:
    """Answers 304 to a condition that holds, as servers do."""

    def answer(handler) -> None:
        conditions = (handler.headers["If-None-Match"], handler.headers["If-Modified-Since"])
        if any(value in conditions for value in headers.values()):
            send(handler, b"", status=304)
        else:
            send(handler, body, **headers)

    return answer


def note(kept: Path) -> dict:
    return json.loads((kept / "input.json").read_text())


# --- Used again ---


@pytest.mark.parametrize("headers", [{"ETag": '"v1"'}, {"ETag": 'W/"v1"'}, {"Last_Modified": OLD}])
def test_kept_file_is_used_again_if_the_source_has_not_changed(
    run_fetch: Fetcher, server: StaticServer, kept: Path, headers: dict[str, str]
):
    server.special["/a.csv"] = versioned(BODY, **headers)
    step = FetchUrl(f"{server.url}/a.csv")
    (first,) = run_fetch(step, kept=kept)
    assert first.path.parent == kept
    inode = first.path.stat().st_ino
    (again,) = run_fetch(step, kept=kept)
    assert again == first
    assert again.path.stat().st_ino == inode
    assert len(server.requests) == 2


def test_kept_file_is_used_again_with_a_server_that_knows_no_conditions(
    run_fetch: Fetcher, server: StaticServer, kept: Path
):
    step = FetchUrl(f"{server.url}/a.csv")
    server.special["/a.csv"] = lambda handler: send(handler, BODY, ETag='"v1"')
    run_fetch(step, kept=kept)
    server.special["/a.csv"] = lambda handler: send(handler, b"?" * 1000, ETag='"v1"')
    assert run_fetch(step, kept=kept)[0].path.read_bytes() == BODY


def test_kept_file_without_a_version_is_used_again_for_a_day(run_fetch: Fetcher, server: StaticServer, kept: Path):
    server.special["/a.csv"] = lambda handler: send(handler, BODY)
    step = FetchUrl(f"{server.url}/a.csv")
    (first,) = run_fetch(step, kept=kept)
    (again,) = run_fetch(step, kept=kept, now=Timestamp(NOW.nanos + 23 * HOUR))
    assert again.path.read_bytes() == BODY
    assert (first.remark, again.event_time) == (None, NOW), "the time when it was fetched"
    assert "read the uncommitted download of 2030-01-01T00:00:00Z" in (again.remark or "")
    assert len(server.requests) == 1
    (late,) = run_fetch(step, kept=kept, now=Timestamp(NOW.nanos + 25 * HOUR))
    assert late.event_time == Timestamp(NOW.nanos + 25 * HOUR)
    assert len(server.requests) == 2


def test_cache_forever_does_not_mean_the_kept_file(run_fetch: Fetcher, server: StaticServer, kept: Path):
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    step = FetchUrl(f"{server.url}/a.csv", cache=CacheForever())
    run_fetch(step, kept=kept)
    server.special["/a.csv"] = versioned(b"new", ETag='"v2"')
    assert run_fetch(step, kept=kept)[0].path.read_bytes() == b"new"


# --- Not used again ---


def test_kept_file_is_not_used_if_the_source_has_changed(run_fetch: Fetcher, server: StaticServer, kept: Path):
    step = FetchUrl(f"{server.url}/a.csv")
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    run_fetch(step, kept=kept)
    server.special["/a.csv"] = versioned(b"new", ETag='"v2"')
    (file,) = run_fetch(step, kept=kept)
    assert (file.path.read_bytes(), file.state) == (b"new", etag_state('"v2"'))


def test_kept_file_is_not_used_if_the_source_has_gone_back(run_fetch: Fetcher, server: StaticServer, kept: Path):
    """v1 is committed, v2 was fetched, and now v1 is served again."""
    step = FetchUrl(f"{server.url}/a.csv")
    server.special["/a.csv"] = versioned(BODY, ETag='"v2"')
    run_fetch(step, kept=kept, state=etag_state('"v1"'))
    server.special["/a.csv"] = versioned(b"old", ETag='"v1"')
    assert run_fetch(step, kept=kept, state=etag_state('"v1"')) == []


def test_kept_file_that_was_committed_is_not_used(run_fetch: Fetcher, server: StaticServer, kept: Path):
    """The process was killed after the commit, before it could remove the file."""
    step = FetchUrl(f"{server.url}/a.csv")
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    run_fetch(step, kept=kept)
    assert run_fetch(step, kept=kept, state=etag_state('"v1"')) == []


@pytest.mark.parametrize("circumstances", [{"force": True}, {"fetch_uncacheable": True}])
def test_kept_file_without_a_version_is_not_used_on_demand(
    run_fetch: Fetcher, server: StaticServer, kept: Path, circumstances: dict[str, bool]
):
    server.special["/a.csv"] = lambda handler: send(handler, BODY)
    run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)
    run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept, **circumstances)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("url", "headers", "environment"),
    [
        ("/b.csv?k=${{ env.KEY }}", (), {"KEY": "s3cr3t"}),
        ("/a.csv?k=${{ env.KEY }}", (), {"KEY": "0ther"}),
        ("/a.csv?k=${{ env.KEY }}", (RequestHeader("Accept", "text/csv"),), {"KEY": "s3cr3t"}),
    ],
    ids=["other-url", "other-value", "other-header"],
)
def test_kept_file_of_another_source_is_not_used(
    run_fetch: Fetcher, server: StaticServer, kept: Path, url: str, headers: tuple, environment: dict[str, str]
):
    first = FetchUrl(f"{server.url}/a.csv?k=${{{{ env.KEY }}}}")
    server.special[""] = lambda handler: send(handler, handler.path.encode())
    run_fetch(first, kept=kept, environment={"KEY": "s3cr3t"})
    assert "s3cr3t" not in (kept / "input.json").read_text()
    (file,) = run_fetch(FetchUrl(f"{server.url}{url}", headers=headers), kept=kept, environment=environment)
    assert len(server.requests) == 2
    assert file.path.read_bytes().decode() == url.replace("${{ env.KEY }}", environment["KEY"])


def shorten(folder: Path) -> None:
    os.truncate(folder / "input", 500)


def lengthen(folder: Path) -> None:
    with (folder / "input").open("ab") as file:
        file.write(b"?")


def edit(**changes: object) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / "input.json").write_text(json.dumps({**note(folder), **changes}))

    return change


@pytest.mark.parametrize(
    "damage",
    [
        shorten,
        lengthen,
        lambda folder: (folder / "input").unlink(),
        lambda folder: (folder / "input.json").write_text("{"),
        lambda folder: (folder / "input.json").write_text("[]"),
        lambda folder: (folder / "input.json").write_bytes(b"\xff"),
        lambda folder: (folder / "input.json").unlink(),
        edit(received=999),
        edit(received="many"),
        edit(received=-1),
        edit(length=[]),
        edit(modified="yesterday"),
        edit(fetchedAt=None),
    ],
)
def test_kept_file_that_is_damaged_is_fetched_anew(
    run_fetch: Fetcher, server: StaticServer, kept: Path, damage: Callable[[Path], object]
):
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)
    damage(kept)
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)[0].path.read_bytes() == BODY


def test_beginning_of_a_file_that_was_shortened_is_fetched_anew(run_fetch: Fetcher, server: StaticServer, kept: Path):
    server.special["/a.csv"] = cut_after(BODY, 600)
    with pytest.raises(FetchError):
        run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept, retries=0)
    shorten(kept)
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)[0].path.read_bytes() == BODY
    assert "Range" not in server.headers[-1]


def test_only_what_is_known_to_be_on_the_disk_is_gone_on_from(tmp_path: Path):
    """After a power failure there may be anything behind it."""
    file = PendingFile(tmp_path, "source")
    file.start(SourceVersion(etag='"v1"', proof='"v1"'), None, NOW)
    with file.writing() as writer:
        writer.write(b"good")
    with file.path.open("ab") as rest:
        rest.write(b"\0\0\0")
    again = PendingFile(tmp_path, "source")
    assert (again.can_resume, again.received) == (True, 4)
    with again.writing() as writer:
        writer.write(b"!")
    again.finish()
    assert PendingFile(tmp_path, "source").path.read_bytes() == b"good!"


def test_kept_files_are_for_their_owner_only(run_fetch: Fetcher, server: StaticServer, kept: Path):
    server.special["/a.csv"] = versioned(BODY, ETag='"v1"')
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)
    assert (file.path.stat().st_mode & 0o777, kept.stat().st_mode & 0o777) == (0o600, 0o700)


# --- Killed, and out of space ---

CHILD = """
import os, resource, signal, sys
from pathlib import Path
from odfpy.chain.sources import FetchUrl
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError
from odfpy.ingest.fetch import FetchContext, fetch, pending

url, folder, what = sys.argv[1:]
pending._SAFE_EVERY = 1 << 20

def progress(done, total):
    if what == "killed" and done > 5_000_000:
        os.kill(os.getpid(), signal.SIGKILL)

if what == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
context = FetchContext(
    now=Timestamp.parse("2030-01-01"), root=Path(folder), scratch=Path(folder), kept=Path(folder), progress=progress
)
try:
    list(fetch(FetchUrl(url), context))
except FetchError as error:
    print(error.message)
"""


def fetch_in_child(url: str, folder: Path, what: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", CHILD, url, str(folder), what]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_download_goes_on_after_a_kill(run_fetch: Fetcher, server: StaticServer, kept: Path):
    body = os.urandom(8 << 20)

    def answer(handler) -> None:
        start = int(handler.headers.get("Range", "bytes=0-")[6:-1])
        more = {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"} if start else {}
        send(handler, body[start:], status=206 if start else 200, ETag='"v1"', **more)

    server.special["/a.csv"] = answer
    assert fetch_in_child(f"{server.url}/a.csv", kept, "killed").returncode == -9
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"), kept=kept)
    assert file.path.read_bytes() == body
    assert server.headers[-1]["If-Range"] == '"v1"'
    # Safe is what came a megabyte before the kill, less the block that was being read.
    assert int(server.headers[-1]["Range"][6:-1]) >= 3 << 20


def test_full_disk_is_a_clear_error_and_nothing_is_left(server: StaticServer, kept: Path):
    server.special["/a.csv"] = lambda handler: send(handler, bytes(200_000), ETag='"v1"')
    child = fetch_in_child(f"{server.url}/a.csv", kept, "full")
    assert child.stdout == f"Cannot write the data of {server.url}/a.csv to {kept}: File too large\n"
    assert not list(kept.iterdir())
