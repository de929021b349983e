"""The HTTP client against real servers on the loopback interface."""

from __future__ import annotations

import base64
import contextlib
import gc
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.servers.certificates import self_signed
from support.servers.static_server import StaticServer, cut_after, endless, send, static_server

from odfpy.errors import FetchError, FetchInterrupted
from odfpy.http import limits
from odfpy.http.client import MAX_REDIRECTS, HttpClient
from odfpy.http.limits import TransferLimits
from odfpy.http.url import parse_url, without_user


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "small").write_bytes(b"hello")
    (tmp_path / "large").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "empty").write_bytes(b"")
    with static_server(tmp_path) as site:
        yield site


@pytest.fixture
def client() -> Iterator[HttpClient]:
    client = HttpClient(FetchError, timeout=60)
    yield client
    client.close()


@pytest.fixture
def raw_server() -> Iterator[Callable[[bytes], str]]:
    """Servers that send given bytes to whoever connects, whatever is asked."""
    listeners = []

    def serve(answer: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def run() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                with contextlib.suppress(OSError):
                    peer.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/x"

    yield serve
    for listener in listeners:
        listener.close()


@pytest.mark.parametrize(("name", "size"), [("small", 5), ("large", 1 << 20), ("empty", 0)])
def test_document_is_read_whole(server: StaticServer, client: HttpClient, name: str, size: int):
    with client.get(f"{server.url}/{name}") as answer:
        assert (answer.status, answer.length) == (200, size)
        assert len(answer.readall()) == size


def test_body_is_a_stream(server: StaticServer, client: HttpClient):
    with client.get(f"{server.url}/large") as answer:
        first = answer.read(1000)
        assert 0 < len(first) <= 1000
        assert len(first + answer.read()) == 1 << 20
        assert answer.read(10) == b""


def test_head_has_the_length_and_no_body(server: StaticServer, client: HttpClient):
    with client.head(f"{server.url}/large") as answer:
        assert (answer.length, answer.read()) == (1 << 20, b"")


def test_other_statuses_are_answers(server: StaticServer, client: HttpClient):
    with client.get(f"{server.url}/nothing", max_size=3) as answer:
        assert answer.status == 404


def test_request_headers_are_sent(server: StaticServer, client: HttpClient):
    server.special["/small"] = lambda handler: send(handler, b"", status=304)
    with client.get(f"{server.url}/small", {"If-None-Match": '"x"'}) as answer:
        assert answer.status == 304
    assert server.headers[0]["If-None-Match"] == '"x"'
    assert server.headers[0]["Accept-Encoding"] == "identity"


def test_headers_of_the_caller_take_the_place_of_those_of_the_client(server: StaticServer, client: HttpClient):
    names = []
    server.special["/small"] = lambda handler: (names.extend(handler.headers.keys()), send(handler, b""))
    with client.get(f"{server.url}/small", {"user-agent": "me", "ACCEPT": "text/csv"}):
        pass
    assert sorted(name.lower() for name in names) == ["accept", "accept-encoding", "host", "user-agent"]


def test_connection_is_kept_and_used_again(server: StaticServer, client: HttpClient):
    for name in ("small", "large", "empty", "small"):
        with client.get(f"{server.url}/{name}") as answer:
            answer.readall()
    with client.head(f"{server.url}/small"):
        pass
    assert server.connections == 1


def test_kept_connection_that_the_server_closed_is_replaced(server: StaticServer, client: HttpClient):
    def hang_up(handler):
        send(handler, b"bye")
        handler.close_connection = True  # without saying so

    server.special["/bye"] = hang_up
    for _ in range(3):
        with client.get(f"{server.url}/bye") as answer:
            assert answer.readall() == b"bye"
    assert server.connections == 3


def test_unread_body_gives_up_the_connection(server: StaticServer, client: HttpClient):
    client.get(f"{server.url}/large").close()
    with client.get(f"{server.url}/small") as answer:
        assert answer.readall() == b"hello"
    assert server.connections == 2


def test_threads_share_a_client(server: StaticServer, client: HttpClient):
    sizes = []

    def read():
        for _ in range(5):
            with client.get(f"{server.url}/large") as answer:
                sizes.append(len(answer.readall()))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [1 << 20] * 20
    assert server.connections <= 4


def test_forgotten_client_closes_its_connections(server: StaticServer):
    client = HttpClient(FetchError)
    with client.get(f"{server.url}/small") as answer:
        answer.readall()
    del client, answer
    gc.collect()  # a socket left open would be a ResourceWarning, which is an error here


def test_body_cut_short_is_an_error(server: StaticServer, client: HttpClient):
    server.special["/cut"] = cut_after(b"x" * 1000, 400)
    with client.get(f"{server.url}/cut") as answer, pytest.raises(FetchError, match="interrupted after 400 of 1000"):
        answer.readall()


def test_chunked_body(raw_server, client: HttpClient):
    url = raw_server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    with client.get(url) as answer:
        assert (answer.length, answer.read()) == (None, b"abcde")


def test_chunked_body_cut_short_is_an_error(raw_server, client: HttpClient):
    url = raw_server(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30\r\nabc")
    with client.get(url) as answer, pytest.raises(FetchError, match="interrupted after 3 bytes"):
        answer.read()


def test_announced_length_beyond_the_limit_is_refused_at_once(server: StaticServer, client: HttpClient):
    with pytest.raises(FetchError, match="1048576 bytes are announced, 1000 are allowed"):
        client.get(f"{server.url}/large", max_size=1000)


def test_endless_body_ends_at_the_limit(server: StaticServer, client: HttpClient):
    server.special["/endless"] = endless()
    with client.get(f"{server.url}/endless", max_size=100_000) as answer, pytest.raises(FetchError, match="more than"):
        answer.readall()


def test_encoding_that_was_not_asked_for_is_refused(server: StaticServer, client: HttpClient):
    server.special["/gz"] = lambda handler: send(handler, b"...", Content_Encoding="gzip")
    with pytest.raises(FetchError, match="'gzip' encoding"):
        client.get(f"{server.url}/gz")


def test_trickling_server_is_given_up(server: StaticServer, client: HttpClient, monkeypatch):
    monkeypatch.setattr(limits, "current_limits", lambda: TransferLimits(least_speed=10**12, window=0))
    with pytest.raises(FetchError, match=r"\d+ bytes in 0 s is below"):
        client.get(f"{server.url}/large")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "without an answer"),
        (b"SSH-2.0-OpenSSH\r\n", "not HTTP"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000, "headers are too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500, "more than 100 headers"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100_000, "header line"),
    ],
    ids=["nothing", "other-protocol", "endless-continue", "many-headers", "long-header"],
)
def test_what_is_no_proper_answer_is_a_clear_error(raw_server, client: HttpClient, answer: bytes, message: str):
    url = raw_server(answer)
    with pytest.raises(FetchError, match=f"Cannot read {url}: .*{message}"):
        client.get(url)


def test_length_that_is_no_length_is_no_length(raw_server, client: HttpClient):
    url = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\nabc")
    with client.get(url) as answer:
        assert (answer.length, answer.read()) == (None, b"abc")


def test_silent_server_times_out():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/x"
        with pytest.raises(FetchError, match="timed out"):
            HttpClient(FetchError, timeout=0.2).get(url)


def test_nobody_listens(client: HttpClient):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(FetchError, match="Connection refused") as caught:
        client.get(f"http://127.0.0.1:{port}/x")
    assert caught.value.hint


def test_waiting_reader_is_woken_by_closing(server: StaticServer, client: HttpClient):
    released = threading.Event()

    def stall(handler):
        send(handler, b"begin", Content_Length=1000)
        handler.wfile.flush()
        released.wait(10)

    server.special["/stall"] = stall
    answer = client.get(f"{server.url}/stall")
    assert answer.read(10)
    errors = []

    def read():
        try:
            answer.read(10)
        except FetchError as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    answer.close()
    reader.join(60)
    released.set()
    assert len(errors) == 1


# --- Redirects ---


def redirect(location: str, status: int = 302):
    return lambda handler: send(handler, b"moved", status=status, Location=location)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_followed_on_the_same_connection(server: StaticServer, client: HttpClient, status: int):
    server.special["/from"] = redirect("small", status)
    with client.get(f"{server.url}/from") as answer:
        assert answer.readall() == b"hello"
        assert answer.url == f"{server.url}/small"
    assert server.connections == 1


def test_redirects_are_limited(server: StaticServer, client: HttpClient):
    server.special["/loop"] = redirect("/loop")
    with pytest.raises(FetchError, match=f"redirected more than {MAX_REDIRECTS} times"):
        client.get(f"{server.url}/loop")
    assert len(server.requests) == MAX_REDIRECTS + 1


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("file:///etc/passwd", "/from: redirected to 'file', and only http and https are followed"),
        ("ftp://host/x", "/from: redirected to 'ftp', and only http and https are followed"),
        ("http://[::1/x", "Not an http or https URL"),
    ],
)
def test_redirect_out_of_http_is_refused(server: StaticServer, client: HttpClient, location: str, words: str):
    server.special["/from"] = redirect(location)
    with pytest.raises(FetchError, match=words):
        client.get(f"{server.url}/from")


def test_secrets_do_not_follow_a_redirect_to_another_place(server: StaticServer, client: HttpClient, tmp_path: Path):
    with static_server(tmp_path) as other:
        server.special["/from"] = redirect(f"{other.url}/small")
        url = server.url.replace("//", "//alice:s3cret@")
        with client.get(f"{url}/from", {"Cookie": "a=b"}) as answer:
            assert answer.readall() == b"hello"
        assert server.headers[0]["Authorization"] == f"Basic {base64.b64encode(b'alice:s3cret').decode()}"
        assert not {"Authorization", "Cookie"} & other.headers[0].keys()


def test_the_query_of_a_redirect_is_in_no_message(server: StaticServer, client: HttpClient):
    server.special["/from"] = redirect("/bucket/object?signature=5ec2e7")
    server.special["signature=5ec2e7"] = cut_after(b"x" * 10, 4)
    with (
        client.get(f"{server.url}/from") as answer,
        pytest.raises(FetchError, match="/bucket/object: ") as caught,
    ):
        answer.readall()
    assert answer.url == f"{server.url}/bucket/object?signature=5ec2e7"
    assert "5ec2e7" not in str(caught.value)


# --- URLs ---


def test_password_is_sent_but_not_shown(server: StaticServer, client: HttpClient):
    server.special["/cut"] = cut_after(b"x" * 10, 4)
    url = server.url.replace("//", "//alice:p%40ss@")
    with client.get(f"{url}/cut") as answer, pytest.raises(FetchError) as caught:
        answer.readall()
    assert "alice" not in str(caught.value)
    assert server.headers[0]["Authorization"] == f"Basic {base64.b64encode(b'alice:p@ss').decode()}"


@pytest.mark.parametrize(
    "url", ["host/x", "ftp://host/x", "http://", "http://a b/x", "http://h:99999/x", "http://a..b/"]
)
def test_what_is_no_url_is_refused(client: HttpClient, url: str):
    with pytest.raises(FetchError):
        client.get(url)


def test_path_is_quoted_once():
    assert str(parse_url("http://h/a b/ü%20c?q=a b#f", FetchError)) == "http://h/a%20b/%C3%BC%20c?q=a%20b"
    assert str(parse_url("https://H:443", FetchError)) == "https://h/"
    assert str(parse_url("http://[::1]:8080/x", FetchError)) == "http://[::1]:8080/x"


def test_user_is_left_out_of_messages():
    assert without_user("https://u:p@h/x@y") == "https://h/x@y"
    assert without_user("/a//b@c") == "/a//b@c"
    assert without_user("s3://key:sec/ret@bucket/x") == "s3://bucket/x"
    for url in ("https://h:80/x@y", "https://h:/x@y", "http://[::1]:80/x@y", "h:80/x@y", "https://h:nonsense/x"):
        assert without_user(url) == url


# --- TLS ---


@pytest.fixture
def tls_server(server: StaticServer, tmp_path: Path) -> Iterator[tuple[StaticServer, Path]]:
    """The same folder behind TLS with a certificate that nobody knows, and the file of the certificate."""
    file, key_file = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key_file)
    with static_server(tmp_path, context) as site:
        yield site, file


def test_unknown_certificate_is_refused(tls_server: tuple[StaticServer, Path], client: HttpClient):
    with pytest.raises(FetchError, match="certificate is not trusted") as caught:
        client.get(f"{tls_server[0].url}/small")
    assert "SSL_CERT_FILE" in (caught.value.hint or "")


def test_certificate_of_ones_own_can_be_trusted(tls_server: tuple[StaticServer, Path], client: HttpClient, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tls_server[1]))
    for _ in range(2):
        with client.get(f"{tls_server[0].url}/large") as answer:
            assert len(answer.readall()) == 1 << 20


def test_redirect_from_https_to_http_is_refused(
    tls_server: tuple[StaticServer, Path], server: StaticServer, client: HttpClient, monkeypatch
):
    site, certificate = tls_server
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    site.special["/from"] = redirect(f"{server.url}/small")
    with pytest.raises(FetchError, match=r"redirected from https to http://127.0.0.1:[0-9]+, which is not safe"):
        client.get(f"{site.url}/from")
    assert server.requests == []


# --- Proxies ---


def test_proxy_of_the_environment_is_asked(server: StaticServer, client: HttpClient, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("//", "//u:p@"))
    server.special["http://example.org/small"] = lambda handler: send(handler, b"by proxy")
    with client.get("http://example.org/small") as answer:
        assert answer.readall() == b"by proxy"
    assert server.requests == [("GET", "http://example.org/small")]
    assert server.headers[0]["Host"] == "example.org"
    assert server.headers[0]["Proxy-Authorization"].startswith("Basic ")


def test_proxy_is_passed_by_where_the_environment_says_so(server: StaticServer, client: HttpClient, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with client.get(f"{server.url}/small") as answer:
        assert answer.readall() == b"hello"


def test_https_goes_through_a_tunnel(server: StaticServer, client: HttpClient, monkeypatch):
    monkeypatch.setenv("https_proxy", server.url)
    with pytest.raises(FetchError, match=r"Cannot read https://example.org/x: .*501"):
        client.get("https://example.org/x")  # this server knows no CONNECT


# --- Lengths ---


def test_bytes_beyond_the_announced_length_are_an_error(raw_server, client: HttpClient):
    url = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef")
    with client.get(url) as answer, pytest.raises(FetchError, match="more than the 3 announced bytes"):
        answer.readall()


def test_line_break_after_the_body_is_forgiven(raw_server, client: HttpClient):
    url = raw_server(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc\r\n")
    with client.get(url) as answer:
        assert answer.readall() == b"abc"


def test_connection_with_bytes_that_nobody_asked_for_is_not_used_again(server: StaticServer, client: HttpClient):
    """They would pass for the answer to the next question."""

    gone, evil = (f"HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\n".encode() for status in ("404 Gone", "200 OK"))
    server.special["/none"] = lambda handler: handler.wfile.write(gone + b"gone" + evil + b"evil")
    with client.get(f"{server.url}/none") as first:
        first.readall()
    with client.get(f"{server.url}/small") as second:
        assert second.readall() == b"hello"


def test_what_another_try_may_not_meet_is_told_apart(server: StaticServer):
    server.special["/cut"] = cut_after(b"x" * 10, 5)
    server.special["/endless"] = endless()
    client = HttpClient(FetchError, interrupted=FetchInterrupted, timeout=60)
    with client.get(f"{server.url}/cut") as answer, pytest.raises(FetchInterrupted):
        answer.readall()
    with client.get(f"{server.url}/endless", max_size=100) as answer, pytest.raises(FetchError) as caught:
        answer.readall()
    assert type(caught.value) is FetchError
    client.close()
