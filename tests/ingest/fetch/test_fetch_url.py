"""URLs of files and over HTTP: fetched once for each version, whole or not at all, secrets kept."""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.ingest.fetching import NOW, Fetcher
from support.servers.static_server import StaticServer, cut_after, endless, send, static_server

from odfpy.chain.events import SourceState
from odfpy.chain.sources import (
    CacheForever,
    EventTimeFromMetadata,
    EventTimeFromPath,
    EventTimeFromSystemTime,
    FetchUrl,
    RequestHeader,
)
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError
from odfpy.ingest.event_time import modified_at
from odfpy.ingest.source_state import etag_state, last_modified_state

MODIFIED = "Fri, 01 Mar 2024 12:00:00 GMT"
MODIFIED_STATE = SourceState("default", "odf/last-modified", "2024-03-01T12:00:00Z")
ETAG_STATE = SourceState("default", "odf/etag", '"v1"')


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as site:
        yield site


def versioned(body: bytes, **headers: object):
    """Answers 304 to a condition that holds, as servers do."""

    def answer(handler):
        if handler.headers["If-None-Match"] == headers.get("ETag") is not None:
            send(handler, b"", status=304)
        else:
            send(handler, body, **headers)

    return answer


# --- Files ---


def test_file_is_read_where_it_is(run_fetch: Fetcher, tmp_path: Path):
    path = tmp_path / "in folder" / "a.csv"
    path.parent.mkdir()
    path.touch()
    os.utime(path, ns=(0, 1_709_294_400_000_499_999))
    for url in ("file:in%20folder/a.csv", path.as_uri(), f"file:{path.as_posix()}".replace(" ", "%20")):
        (file,) = run_fetch(FetchUrl(url))
        assert file.path == path
        assert file.state == MODIFIED_STATE
        assert file.event_time == Timestamp.parse("2024-03-01T12:00:00Z")
        assert not file.is_temporary


def test_a_time_of_modification_that_is_none_is_told_with_the_file():
    with pytest.raises(FetchError, match=r"a\.csv was last modified at a time that cannot be recorded") as caught:
        modified_at(300_000_000_000 * 10**9, "file:a.csv")
    assert caught.value.hint == "`touch` corrects it."


def test_file_is_new_when_it_was_modified(run_fetch: Fetcher, tmp_path: Path):
    path = tmp_path / "a.csv"
    path.touch()
    step = FetchUrl("file:a.csv")
    (file,) = run_fetch(step)
    assert run_fetch(step, state=file.state) == []
    assert len(run_fetch(step, state=file.state, force=True)) == 1
    os.utime(path, ns=(0, 1_000_000_000))
    assert len(run_fetch(step, state=file.state)) == 1


def test_event_times_of_a_file(run_fetch: Fetcher, tmp_path: Path):
    (tmp_path / "2024-03-01.csv").touch()
    url = "file:2024-03-01.csv"
    assert run_fetch(FetchUrl(url, EventTimeFromSystemTime()))[0].event_time == NOW
    from_path = FetchUrl(url, EventTimeFromPath(r"(\d+-\d+-\d+)"))
    assert run_fetch(from_path)[0].event_time == Timestamp.parse("2024-03-01")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("file:nowhere.csv", "Cannot read file:nowhere.csv: No such file or directory"),
        ("file:.", "file:. is not a file"),
        ("file://folder/a.csv", "file://folder/a.csv names a file on another machine"),
        ("folder/a.csv", "folder/a.csv is not a URL"),
        ("http://[::1/", "http://[::1/ is not a URL"),
        ("http://host:99999/", "http://host:99999/ is not a URL"),
    ],
)
def test_url_that_leads_to_no_file(run_fetch: Fetcher, url: str, message: str):
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchUrl(url))
    assert caught.value.message == message


# --- Versions over HTTP ---


def test_document_is_downloaded(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    server.special["/a.csv"] = versioned(b"x,y\n", ETag='"v1"', Last_Modified=MODIFIED)
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert file.path.read_bytes() == b"x,y\n"
    assert file.path.parent == tmp_path / "scratch"
    assert file.is_temporary
    assert file.state == ETAG_STATE
    assert file.event_time == Timestamp.parse("2024-03-01T12:00:00Z")
    assert server.headers[0]["User-Agent"].startswith("odfpy")


def test_etag_is_asked_for_and_304_is_up_to_date(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = versioned(b"x", ETag='"v1"')
    step = FetchUrl(f"{server.url}/a.csv")
    assert run_fetch(step, state=ETAG_STATE, has_data=True) == []
    assert server.headers[0]["If-None-Match"] == '"v1"'
    server.special["/a.csv"] = versioned(b"x", ETag='"v2"')
    assert run_fetch(step, state=ETAG_STATE)[0].state == etag_state('"v2"')


def test_time_of_modification_is_asked_for(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    """A plain file server, without ETags."""
    path = tmp_path / "site" / "a.csv"
    path.write_bytes(b"x")
    os.utime(path, ns=(0, 1_709_294_400_000_000_000))
    step = FetchUrl(f"{server.url}/a.csv")
    assert run_fetch(step)[0].state == MODIFIED_STATE
    assert run_fetch(step, state=MODIFIED_STATE) == []
    assert server.headers[-1]["If-Modified-Since"] == MODIFIED
    os.utime(path, ns=(0, 1_709_294_401_000_000_000))
    assert len(run_fetch(step, state=MODIFIED_STATE)) == 1


def test_file_modified_in_this_second_is_taken_when_the_second_is_over(run_fetch: Fetcher, server: StaticServer):
    """Another change in the same second would have the same time, and would never be fetched."""
    step, waits = FetchUrl(f"{server.url}/a.csv"), []

    def answer(body: bytes, seconds: str, **headers: str):
        def special(handler):
            handler.date_time_string = lambda *_: MODIFIED.replace(":00 GMT", f":{seconds} GMT")
            send(handler, body, Last_Modified=MODIFIED, **headers)

        return special

    def pause(seconds: float) -> None:
        waits.append(seconds)
        server.special["/a.csv"] = answer(b"whole", "01")

    server.special["/a.csv"] = answer(b"half", "00")
    (file,) = run_fetch(step, pause=pause)
    assert (file.path.read_bytes(), file.state, waits) == (b"whole", MODIFIED_STATE, [1.0])
    server.special["/a.csv"] = answer(b"tagged", "00", ETag='"v1"')
    (file,) = run_fetch(step, pause=pause)
    assert (file.path.read_bytes(), waits) == (b"tagged", [1.0])  # an ETag changes within a second, too


def test_server_that_always_answers_with_the_present_time_is_asked_twice(run_fetch: Fetcher, server: StaticServer):
    def special(handler):
        handler.date_time_string = lambda *_: MODIFIED
        send(handler, b"x", Last_Modified=MODIFIED)

    server.special["/a.csv"] = special
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert (file.path.read_bytes(), len(server.requests)) == (b"x", 2)


@pytest.mark.parametrize(
    ("headers", "state"), [({"ETag": '"v1"'}, ETAG_STATE), ({"Last_Modified": MODIFIED}, MODIFIED_STATE)]
)
def test_known_version_is_not_taken_twice_from_a_server_that_knows_no_conditions(
    run_fetch: Fetcher, server: StaticServer, headers: dict[str, str], state: SourceState
):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", **headers)
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"), state=state) == []


def test_force_fetches_again(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = versioned(b"x", ETag='"v1"')
    step = FetchUrl(f"{server.url}/a.csv", cache=CacheForever())
    assert len(run_fetch(step, state=ETAG_STATE, force=True)) == 1
    assert "If-None-Match" not in server.headers[0]


def test_server_without_versions_is_asked_once(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", Last_Modified="yesterday")
    step = FetchUrl(f"{server.url}/a.csv")
    (file,) = run_fetch(step)
    assert file.state is None
    assert file.event_time == NOW
    assert run_fetch(step, has_data=True) == []
    assert len(run_fetch(step, has_data=True, force=True)) == 1


@pytest.mark.parametrize("headers", [{}, {"ETag": '"v1"'}, {"Last_Modified": MODIFIED}])
def test_cache_forever_never_asks_again(run_fetch: Fetcher, server: StaticServer, headers: dict[str, str]):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", **headers)
    step = FetchUrl(f"{server.url}/a.csv", cache=CacheForever())
    (file,) = run_fetch(step)
    assert file.state is not None
    server.forget()
    assert run_fetch(step, state=file.state) == []
    assert server.requests == []


def test_event_times_over_http(run_fetch: Fetcher, server: StaticServer):
    server.special["/2024-03-02.csv"] = lambda handler: send(handler, b"x", Last_Modified=MODIFIED)
    url = f"{server.url}/2024-03-02.csv"
    for source, wanted in [
        (None, "2024-03-01T12:00:00Z"),
        (EventTimeFromMetadata(), "2024-03-01T12:00:00Z"),
        (EventTimeFromSystemTime(), str(NOW)),
        (EventTimeFromPath(r"(\d+-\d+-\d+)"), "2024-03-02T00:00:00Z"),
    ]:
        assert str(run_fetch(FetchUrl(url, source))[0].event_time) == wanted


# --- What goes wrong ---


@pytest.mark.parametrize(
    ("status", "message", "hint"),
    [
        (401, "the server answers 401, Unauthorized", "credentials"),
        (404, "the server answers 404, Not Found", "Check the URL"),
        (418, "the server answers 418, I'm a Teapot", "Check the URL"),
        (503, "the server answers 503, Service Unavailable (tried 4 times)", "try again later"),
        (599, "the server answers 599, without a reason", "try again later"),
    ],
)
def test_status_is_told_with_what_to_do(run_fetch: Fetcher, server: StaticServer, status: int, message: str, hint: str):
    server.special["/a.csv"] = lambda handler: send(handler, b"SECRET", status=status)
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert caught.value.message == f"{server.url}/a.csv: {message}"
    assert hint in (caught.value.hint or "")


def test_body_cut_short_is_an_error(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = cut_after(b"x" * 1000, 500)
    with pytest.raises(FetchError, match="interrupted after 500 of 1000 bytes"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


def test_size_is_limited_whatever_is_announced(run_fetch: Fetcher, server: StaticServer):
    server.special["/endless"] = endless()
    with pytest.raises(FetchError, match="more than the 100000 bytes that are allowed"):
        run_fetch(FetchUrl(f"{server.url}/endless"), max_bytes=100_000)


def test_nobody_listens(run_fetch: Fetcher):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(FetchError, match=f"Cannot read http://127.0.0.1:{port}/a.csv: Connection refused") as caught:
        run_fetch(FetchUrl(f"http://127.0.0.1:{port}/a.csv"))
    assert caught.value.hint


def test_progress_is_told_in_bytes(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = lambda handler: send(handler, b"x" * 3_000_000)
    seen: list[tuple[int, int | None]] = []
    run_fetch(FetchUrl(f"{server.url}/a.csv"), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3_000_000, 3_000_000)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_folder_that_cannot_be_written(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    (tmp_path / "scratch").touch()
    server.special["/a.csv"] = lambda handler: send(handler, b"x")
    with pytest.raises(FetchError, match="Cannot write the data of"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


# --- Secrets ---

SECRET = "s3cr3t"
SECRETIVE = FetchUrl(
    "",
    headers=(RequestHeader("X-Api-Key", "${{ env.KEY }}"), RequestHeader("Accept", "text/csv")),
)


def with_secrets(url: str, path: str = "/a.csv") -> FetchUrl:
    host = url.removeprefix("http://")
    address = f"http://user:${{{{ env.KEY }}}}@{host}{path}?key=${{{{ env.KEY }}}}"
    return FetchUrl(address, headers=SECRETIVE.headers)


def test_secrets_are_sent(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv?key=s3cr3t"] = lambda handler: send(handler, b"x")
    (file,) = run_fetch(with_secrets(server.url), environment={"KEY": SECRET})
    sent = server.headers[0]
    assert sent["X-Api-Key"] == SECRET
    assert sent["Accept"] == "text/csv"
    assert base64.b64decode(sent["Authorization"].removeprefix("Basic ")) == b"user:s3cr3t"
    assert file.name == f"{server.url}/a.csv?..."


def test_secrets_do_not_follow_a_redirect_to_another_server(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    (tmp_path / "other").mkdir()
    with static_server(tmp_path / "other") as other:
        other.special["/b.csv"] = lambda handler: send(handler, b"x", ETag='"v2"')
        server.special["s3cr3t"] = lambda handler: send(handler, b"", status=302, Location=f"{other.url}/b.csv")
        (file,) = run_fetch(with_secrets(server.url), environment={"KEY": SECRET}, state=ETAG_STATE)
        assert file.state == etag_state('"v2"')
        assert SECRET not in str(other.headers[0])
        assert other.headers[0]["If-None-Match"] == '"v1"'


@pytest.mark.parametrize("problem", ["status", "cut", "refused", "endless", "loop", "no http", "bad url", "bad header"])
def test_secrets_are_in_no_message(run_fetch: Fetcher, server: StaticServer, problem: str):
    step, key, url = with_secrets(server.url, "/${{ env.KEY }}/a.csv"), SECRET, server.url
    match problem:
        case "status":
            server.special[SECRET] = lambda handler: send(handler, SECRET.encode(), status=500)
        case "cut":
            server.special[SECRET] = cut_after(b"x" * 10, 5)
        case "endless":
            server.special[SECRET] = endless()
        case "loop":
            server.special[SECRET] = lambda handler: send(handler, b"", status=302, Location=f"?again={SECRET}")
        case "no http":
            server.special[SECRET] = lambda handler: handler.wfile.write(b"nonsense\r\n\r\n")
        case "refused":
            with socket.create_server(("127.0.0.1", 0)) as listener:
                url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            step = with_secrets(url, "/${{ env.KEY }}/a.csv")
        case "bad url":
            step = FetchUrl("http://${{ env.KEY }}:x/")
        case "bad header":
            key = SECRET + "\n"
    with pytest.raises(FetchError) as caught:
        run_fetch(step, environment={"KEY": key}, max_bytes=1000)
    error: BaseException | None = caught.value
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__


def test_missing_variable_of_a_header_is_named(run_fetch: Fetcher, server: StaticServer):
    with pytest.raises(FetchError, match="The environment variable KEY is not set"):
        run_fetch(FetchUrl(f"{server.url}/a.csv", headers=SECRETIVE.headers))
    assert server.requests == []


def test_states_of_other_writers_are_understood():
    assert last_modified_state(Timestamp.parse("2024-03-01T12:00:00.5Z")).value == "2024-03-01T12:00:00.500Z"
