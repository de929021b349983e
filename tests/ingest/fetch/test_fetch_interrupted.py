"""Over HTTP through interruptions: again when that may help, from where it was only if that is proven to be right."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import pytest
from support.ingest.fetching import Fetcher
from support.servers.static_server import StaticServer, endless, send, static_server

from odfpy.chain.sources import FetchUrl
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.http import limits
from odfpy.http.limits import TransferLimits
from odfpy.ingest.source_state import etag_state

BODY = os.urandom(5000)
OLD = "Fri, 01 Mar 2024 12:00:00 GMT"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as site:
        yield site


def breaking(body: bytes, sizes: list[int], **headers: str) -> Callable:
    """Serves ranges as servers should, but hangs up after each of some numbers of bytes."""

    def answer(handler) -> None:
        start, status, more = 0, 200, {}
        if "Range" in handler.headers and handler.headers["If-Range"] in headers.values():
            start = int(handler.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            status, more = 206, {"Content_Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
        size = sizes.pop(0) if sizes else len(body)
        send(
            handler,
            body[start : start + size],
            status=status,
            **{**headers, **more, "Content_Length": len(body) - start},
        )
        handler.close_connection = True

    return answer


def ranges(server: StaticServer) -> list[tuple[str | None, str | None]]:
    return [(headers.get("Range"), headers.get("If-Range")) for headers in server.headers]


ANEW = (None, None)


# --- Going on ---


@pytest.mark.parametrize("headers", [{"ETag": '"v1"'}, {"Last_Modified": OLD}, {"ETag": '"v1"', "Last_Modified": OLD}])
def test_download_goes_on_where_it_broke_off(run_fetch: Fetcher, server: StaticServer, headers: dict[str, str]):
    server.special["/a.csv"] = breaking(BODY, [1000, 1500], **headers)
    seen: list[tuple[int, int | None]] = []
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"), progress=lambda done, total: seen.append((done, total)))
    proof = next(iter(headers.values()))
    assert ranges(server) == [ANEW, ("bytes=1000-", proof), ("bytes=2500-", proof)]
    assert file.path.read_bytes() == BODY
    assert {total for _, total in seen} == {len(BODY)}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize(
    "headers",
    [{}, {"ETag": 'W/"v1"'}, {"ETag": 'W/"v1"', "Last_Modified": OLD}, {"Last_Modified": "now"}],
    ids=["nothing", "weak-etag", "weak-etag-and-time", "too-young"],
)
def test_what_proves_nothing_begins_anew(run_fetch: Fetcher, server: StaticServer, headers: dict[str, str]):
    if "now" in headers.values():
        recent = datetime.now(timezone.utc) - timedelta(seconds=20)
        headers = {"Last_Modified": format_datetime(recent, usegmt=True)}
    server.special["/a.csv"] = breaking(BODY, [1000, 1500], **headers)
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert ranges(server) == [ANEW, ANEW, ANEW]
    assert file.path.read_bytes() == BODY


def test_version_that_has_changed_in_the_meantime_is_fetched_whole(run_fetch: Fetcher, server: StaticServer):
    new = os.urandom(4000)

    def answer(handler) -> None:
        breaking(BODY, [1000], ETag='"v1"')(handler)
        server.special["/a.csv"] = breaking(new, [], ETag='"v2"')

    server.special["/a.csv"] = answer
    (file,) = run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert (file.path.read_bytes(), file.state) == (new, etag_state('"v2"'))


@pytest.mark.parametrize(
    "lie",
    [
        {"ETag": '"v2"', "Content_Range": "bytes 1000-4999/5000"},
        {"Content_Range": "bytes 1000-4999/5000"},
        {"ETag": '"v1"', "Content_Range": "bytes 900-4999/5000"},
        {"ETag": '"v1"', "Content_Range": "bytes 1000-4999/*"},
        {"ETag": '"v1"', "Content_Range": "rest"},
        {"ETag": '"v1"'},
    ],
)
def test_rest_that_is_not_proven_to_belong_is_not_taken(run_fetch: Fetcher, server: StaticServer, lie: dict[str, str]):
    def answer(handler) -> None:
        if "Range" in handler.headers:
            send(handler, b"?" * 4000, status=206, **lie)
        else:
            usual(handler)

    usual = breaking(BODY, [1000], ETag='"v1"')
    server.special["/a.csv"] = answer
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == BODY
    assert ranges(server) == [ANEW, ("bytes=1000-", '"v1"'), ANEW]


def test_rest_of_a_file_of_another_length_is_not_taken_whatever_its_etag(run_fetch: Fetcher, server: StaticServer):
    longer = BODY + b"more"

    def answer(handler) -> None:
        breaking(BODY, [1000], ETag='"v1"')(handler)
        server.special["/a.csv"] = breaking(longer, [], ETag='"v1"')

    server.special["/a.csv"] = answer
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == longer
    assert ranges(server) == [ANEW, ("bytes=1000-", '"v1"'), ANEW]


def test_download_without_an_announced_length_goes_on(run_fetch: Fetcher, server: StaticServer):
    def answer(handler) -> None:
        if "Range" in handler.headers:
            breaking(BODY, [], ETag='"v1"')(handler)
            return
        send(handler, b"", ETag='"v1"', Transfer_Encoding="chunked", Content_Length=None)
        handler.wfile.write(b"3e8\r\n" + BODY[:1000] + b"\r\n")  # and hangs up before the last chunk

    server.special["/a.csv"] = answer
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == BODY
    assert ranges(server) == [ANEW, ("bytes=1000-", '"v1"')]


def test_rest_from_another_place_is_not_taken_whatever_its_etag(
    run_fetch: Fetcher, server: StaticServer, tmp_path: Path
):
    """An ETag tells the versions of one URL apart, not what mirrors have."""
    (tmp_path / "other").mkdir()
    with static_server(tmp_path / "other") as other:
        mirrors = [f"{other.url}/a.csv", f"{server.url}/b.csv", f"{server.url}/b.csv"]
        other.special["/a.csv"] = breaking(b"?" * len(BODY), [1000], ETag='"v1"')
        server.special["/b.csv"] = breaking(BODY, [], ETag='"v1"')
        server.special["/a.csv"] = lambda handler: send(handler, b"", status=302, Location=mirrors.pop(0))
        assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == BODY


def test_rest_that_is_not_there_is_fetched_anew(run_fetch: Fetcher, server: StaticServer):
    def answer(handler) -> None:
        send(handler, b"", status=416) if "Range" in handler.headers else usual(handler)

    usual = breaking(BODY, [1000], ETag='"v1"')
    server.special["/a.csv"] = answer
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == BODY


def test_part_of_the_rest_is_gone_on_from(run_fetch: Fetcher, server: StaticServer):
    """A server may send fewer bytes of a range than were asked for, and say so."""

    def answer(handler) -> None:
        if "Range" not in handler.headers:
            breaking(BODY, [1000], ETag='"v1"')(handler)
            return
        start = int(handler.headers["Range"][6:-1])
        part = BODY[start : start + 2000]
        span = f"bytes {start}-{start + len(part) - 1}/{len(BODY)}"
        send(handler, part, status=206, ETag='"v1"', Content_Range=span)

    server.special["/a.csv"] = answer
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == BODY
    assert [offset for offset, _ in ranges(server)] == [None, "bytes=1000-", "bytes=3000-"]


@pytest.mark.parametrize("headers", [{}, {"ETag": '"v1"'}])
def test_empty_file_is_a_file(run_fetch: Fetcher, server: StaticServer, headers: dict[str, str]):
    server.special["/a.csv"] = breaking(b"", [], **headers)
    for _ in range(2):
        assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == b""


def test_next_pull_goes_on_where_the_last_was_given_up(run_fetch: Fetcher, server: StaticServer):
    step = FetchUrl(f"{server.url}/a.csv")
    server.special["/a.csv"] = breaking(BODY, [1000] * 4, ETag='"v1"')
    with pytest.raises(FetchInterrupted, match=r"interrupted after 1000 of 2000 bytes \(tried 4 times\)"):
        run_fetch(step)
    assert run_fetch(step)[0].path.read_bytes() == BODY
    assert ranges(server)[-1] == ("bytes=4000-", '"v1"')


def test_secrets_do_not_follow_a_redirect_when_going_on(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    (tmp_path / "other").mkdir()
    with static_server(tmp_path / "other") as other:
        other.special["/b.csv"] = breaking(BODY, [1000], ETag='"v1"')
        server.special["/a.csv"] = lambda handler: send(handler, b"", status=302, Location=f"{other.url}/b.csv")
        url = server.url.replace("//", "//user:s3cr3t@")
        assert run_fetch(FetchUrl(f"{url}/a.csv"))[0].path.read_bytes() == BODY
        assert [headers.get("Authorization") for headers in other.headers] == [None, None]
        assert ranges(other) == [ANEW, ("bytes=1000-", '"v1"')]
        assert all("Authorization" in headers for headers in server.headers)


# --- Trying again ---


def failing(times: int, status: int, **headers: str) -> Callable:
    left = [status] * times

    def answer(handler) -> None:
        if left:
            send(handler, b"not now", status=left.pop(), **headers)
        else:
            send(handler, b"x")

    return answer


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_server_that_cannot_now_is_asked_again_after_a_while(run_fetch: Fetcher, server: StaticServer, status: int):
    pauses: list[float] = []
    server.special["/a.csv"] = failing(3, status)
    assert len(run_fetch(FetchUrl(f"{server.url}/a.csv"), pause=pauses.append)) == 1
    assert pauses == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 501, 505])
def test_server_that_will_not_is_not_asked_again(run_fetch: Fetcher, server: StaticServer, status: int):
    server.special["/a.csv"] = failing(1, status)
    with pytest.raises(FetchError, match=f"answers {status}"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "wanted"),
    [
        ({"Retry_After": "7"}, 7.0),
        ({"Retry_After": "0"}, 0.0),
        ({"Retry_After": "soon"}, 1.0),
        ({"Retry_After": "-5"}, 1.0),
        ({"Retry_After": "Fri, 01 Mar 2024 12:00:00 GMT"}, 0.0),
    ],
)
def test_server_says_when_to_ask_again(
    run_fetch: Fetcher, server: StaticServer, headers: dict[str, str], wanted: float
):
    pauses: list[float] = []
    server.special["/a.csv"] = failing(1, 429, **headers)
    run_fetch(FetchUrl(f"{server.url}/a.csv"), pause=pauses.append)
    assert pauses == [wanted]


def test_time_to_ask_again_is_taken_by_the_servers_clock(run_fetch: Fetcher, server: StaticServer):
    pauses: list[float] = []
    later = datetime.now(timezone.utc) + timedelta(seconds=60)
    server.special["/a.csv"] = failing(1, 503, Retry_After=format_datetime(later, usegmt=True))
    run_fetch(FetchUrl(f"{server.url}/a.csv"), pause=pauses.append)
    assert 0 < pauses[0] <= 61


def test_server_that_asks_for_too_much_patience_is_given_up(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = failing(1, 429, Retry_After="86400")
    with pytest.raises(FetchError, match="answers 429") as caught:
        run_fetch(FetchUrl(f"{server.url}/a.csv"))
    assert caught.value.hint == f"{server.url}/a.csv requests a retry after 86400 seconds."
    assert len(server.requests) == 1


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_number_of_tries_is_a_setting(run_fetch: Fetcher, server: StaticServer, retries: int):
    server.special["/a.csv"] = failing(9, 500)
    with pytest.raises(FetchInterrupted):
        run_fetch(FetchUrl(f"{server.url}/a.csv"), retries=retries)
    assert len(server.requests) == retries + 1


def test_tries_are_counted_anew_after_progress(run_fetch: Fetcher, server: StaticServer):
    body = os.urandom(6 << 20)
    server.special["/a.csv"] = breaking(body, [1_100_000] * 5, ETag='"v1"')
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"), retries=1)[0].path.read_bytes() == body


def test_silent_server_is_asked_again(run_fetch: Fetcher):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/a.csv"
        with pytest.raises(FetchInterrupted, match=r"timed out \(tried 3 times\)"):
            run_fetch(FetchUrl(url), timeout=0.1, retries=2)


def test_slow_server_is_given_up_in_the_end(run_fetch: Fetcher, server: StaticServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "current_limits", lambda: TransferLimits(least_speed=10**12, window=0))
    server.special["/a.csv"] = lambda handler: send(handler, BODY, ETag='"v1"')
    with pytest.raises(FetchInterrupted, match="bytes in 0 s is below"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


# --- Lies ---


def test_more_than_was_announced_is_an_error(run_fetch: Fetcher, server: StaticServer):
    """The announced length would cut the file without a word."""
    server.special["/a.csv"] = lambda handler: send(handler, BODY, Content_Length=4000)
    with pytest.raises(FetchError, match="more than the 4000 announced bytes"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


def test_announced_size_beyond_the_limit_is_refused_at_once(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", Content_Length=10**15)
    with pytest.raises(FetchError, match="1000000000000000 bytes are announced, 100 are allowed") as caught:
        run_fetch(FetchUrl(f"{server.url}/a.csv"), max_bytes=100)
    assert "fetch.maxSize" in (caught.value.hint or "")


def test_limit_also_holds_when_going_on(run_fetch: Fetcher, server: StaticServer, tmp_path: Path):
    def answer(handler) -> None:
        if "Range" in handler.headers:
            server.headers[-1]["went on"] = "yes"
            send(handler, b"", status=206, ETag='"v1"', Content_Range="bytes 1000-4999/5000", Content_Length=None)
            endless()(handler)
        breaking(BODY, [1000], ETag='"v1"')(handler)

    server.special["/a.csv"] = answer
    with pytest.raises(FetchError, match="more than the 5000 announced bytes"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"), max_bytes=100_000)
    assert not list((tmp_path / "scratch").iterdir()), "nothing of it is kept"


def test_type_is_not_relied_on(run_fetch: Fetcher, server: StaticServer):
    server.special["/a.csv"] = lambda handler: send(handler, b"x,y", Content_Type="text/html")
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].path.read_bytes() == b"x,y"


@pytest.mark.parametrize("etag", ["x" * 2000, "", "a\tb"])
def test_etag_that_cannot_be_kept_is_none(run_fetch: Fetcher, server: StaticServer, etag: str):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", ETag=etag)
    assert run_fetch(FetchUrl(f"{server.url}/a.csv"))[0].state is None


@pytest.mark.parametrize("status", [304, 206])
def test_answer_to_what_was_not_asked_is_an_error(run_fetch: Fetcher, server: StaticServer, status: int):
    server.special["/a.csv"] = lambda handler: send(handler, b"", status=status)
    with pytest.raises(FetchError, match=f"the server answers {status}"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


def test_compressed_file_is_taken_as_it_is_whatever_the_server_calls_it(run_fetch: Fetcher, server: StaticServer):
    server.special[".gz"] = server.special[".csv"] = lambda handler: send(
        handler, b"\x1f\x8b", Content_Encoding="x-gzip"
    )
    assert run_fetch(FetchUrl(f"{server.url}/a.csv.gz"))[0].path.read_bytes() == b"\x1f\x8b"
    with pytest.raises(FetchError, match="'x-gzip' encoding"):
        run_fetch(FetchUrl(f"{server.url}/a.csv"))


@pytest.mark.parametrize("value", ["a\r\nHost: elsewhere", "☃", ""])
def test_state_of_another_writer_is_not_sent_if_http_does_not_allow_it(
    run_fetch: Fetcher, server: StaticServer, value: str
):
    server.special["/a.csv"] = lambda handler: send(handler, b"x", ETag='"v1"')
    assert len(run_fetch(FetchUrl(f"{server.url}/a.csv"), state=etag_state(value))) == 1
    assert "If-None-Match" not in server.headers[0]
