"""Files on FTP servers: a real one, and some that lie."""

from __future__ import annotations

import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.ingest.fetching import NOW, Fetcher
from support.servers.certificates import self_signed
from support.servers.server_process import ftp_server

from odfpy.chain.sources import FetchUrl
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, FetchInterrupted
from odfpy.ingest.source_state import last_modified_state

MARCH = Timestamp.parse("2024-03-01T12:00:00Z")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("site")
    with ftp_server(str(folder)) as address:
        yield address, folder


def put(folder: Path, name: str, content: bytes, modified: Timestamp = MARCH) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(0, modified.nanos))


def test_file_is_fetched_once_for_each_time_of_modification(run_fetch: Fetcher, site: tuple[str, Path]):
    address, folder = site
    content = os.urandom(3_000_000)
    put(folder, "in here/a.csv", content)
    step = FetchUrl(f"ftp://{address}/in%20here/a.csv")
    seen: list[tuple[int, int | None]] = []
    (file,) = run_fetch(step, progress=lambda done, total: seen.append((done, total)))
    assert file.path.read_bytes() == content
    assert (file.state, file.event_time) == (last_modified_state(MARCH), MARCH)
    assert seen[-1] == (3_000_000, 3_000_000)
    assert run_fetch(step, state=file.state, has_data=True) == []
    put(folder, "in here/a.csv", b"new", Timestamp.parse("2024-03-02"))
    assert run_fetch(step, state=file.state, has_data=True)[0].path.read_bytes() == b"new"


def test_user_and_password_are_sent_and_not_shown(run_fetch: Fetcher, site: tuple[str, Path]):
    address, folder = site
    put(folder, "b.csv", b"x")
    step = FetchUrl(f"ftp://alice:${{{{ env.KEY }}}}@{address}/b.csv;type=i")
    (file,) = run_fetch(step, environment={"KEY": "s3cr3t"})
    assert (file.path.read_bytes(), file.name) == (b"x", f"ftp://{address}/b.csv;type=i")
    with pytest.raises(FetchError, match="the server answers 530") as caught:
        run_fetch(step, environment={"KEY": "wr0ng"})
    assert "wr0ng" not in f"{caught.value} {caught.value.__cause__} {caught.value.hint}"


def test_missing_file(run_fetch: Fetcher, site: tuple[str, Path]):
    url = f"ftp://{site[0]}/none.csv"
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchUrl(url))
    assert caught.value.message == f"{url}: cannot be read, the server answers 550"
    assert caught.value.hint == "Check the path, and whether this user may read the file."


@pytest.mark.parametrize("path", ["", "/", "/a%0d%0aDELE%20b"])
def test_path_that_is_none(run_fetch: Fetcher, path: str):
    with pytest.raises(FetchError, match="names no file on an FTP server"):
        run_fetch(FetchUrl(f"ftp://host{path}"))


def test_nobody_listens(run_fetch: Fetcher):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(FetchError, match="Connection refused"):
        run_fetch(FetchUrl(f"ftp://127.0.0.1:{port}/a.csv"))


# --- Servers that lie ---

BODY = b"0123456789" * 200


@pytest.fixture
def lying() -> Iterator[Callable[..., tuple[str, list[str]]]]:
    """FTP servers with answers by command, one connection after the other; each sends some bytes of a body."""
    listeners: list[socket.socket] = []

    def serve(
        sizes: list[int], after: str = "226 done", tls: ssl.SSLContext | None = None, **answers: str
    ) -> tuple[str, list[str]]:
        control, data = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
        if tls:
            control, data = tls.wrap_socket(control, server_side=True), tls.wrap_socket(data, server_side=True)
        listeners.extend((control, data))
        commands: list[str] = []
        port = data.getsockname()[1]
        usual = {
            "USER": "230 in",
            "PBSZ": "200 ok",
            "PROT": "200 ok",
            "TYPE": "200 ok",
            "MDTM": "213 20240301120000",
            "SIZE": f"213 {len(BODY)}",
            "PASV": f"227 (127,0,0,1,{port // 256},{port % 256})",
            "EPSV": "500 no",
            "REST": "350 ok",
            "RETR": "150 here",
        } | answers

        def run() -> None:
            for size in sizes:
                with suppress(OSError):
                    talk(size)

        def talk(size: int) -> None:
            peer, _ = control.accept()
            with peer, peer.makefile("r", newline="\r\n") as lines:
                peer.sendall(usual.get("hello", "220 hello").encode() + b"\r\n")
                start = 0
                for line in lines:
                    commands.append(line.strip())
                    verb, _, rest = line.strip().partition(" ")
                    start = int(rest) if verb == "REST" else start
                    peer.sendall(f"{usual.get(verb, '500 no')}\r\n".encode())
                    if verb == "RETR" and usual[verb].startswith("1"):
                        with data.accept()[0] as sink:
                            sink.sendall(BODY[start : start + size])
                        if after == "hang up":
                            return
                        peer.sendall(f"{after}\r\n".encode())

        threading.Thread(target=run, daemon=True).start()
        return f"{'ftps' if tls else 'ftp'}://127.0.0.1:{control.getsockname()[1]}/a.csv", commands

    yield serve
    for listener in listeners:
        listener.close()


def test_transfer_that_breaks_off_goes_on_where_it_was(run_fetch: Fetcher, lying):
    url, commands = lying([500, 500, 5000])
    (file,) = run_fetch(FetchUrl(url))
    assert file.path.read_bytes() == BODY
    assert [command for command in commands if command.startswith("REST")] == ["REST 500", "REST 1000"]


def test_transfer_of_a_file_that_may_have_changed_begins_anew(run_fetch: Fetcher, lying):
    """It was modified within the minute: another change would not show."""
    url, commands = lying([500, 5000], MDTM="213 20300101000000")
    assert run_fetch(FetchUrl(url), now=NOW)[0].path.read_bytes() == BODY
    assert not [command for command in commands if command.startswith("REST")]


@pytest.mark.parametrize(
    ("answers", "error", "message"),
    [
        ({"after": "hang up"}, FetchInterrupted, "the server closed the connection"),
        ({"after": "426 failed"}, FetchInterrupted, "the server answers 426"),
        ({"after": "550 failed"}, FetchError, "the server answers 550"),
        ({"SIZE": "213 9000"}, FetchInterrupted, "interrupted after 2000 of 9000 bytes"),
        ({"SIZE": "213 1000"}, FetchError, "more than the 1000 announced bytes"),
        ({"hello": "welcome"}, FetchError, "but not over FTP"),
        ({"hello": "220-" + "a\r\n" * 11_000}, FetchError, "but not over FTP"),
        ({"hello": "421 too many"}, FetchInterrupted, "the server answers 421"),
        ({"RETR": "350 what?"}, FetchError, "the server answers 350"),
        ({"USER": "331 password, please", "PASS": "530 \xff"}, FetchError, "the server answers 530"),
    ],
)
def test_lies_are_found_out(run_fetch: Fetcher, lying, answers, error: type[Exception], message: str):
    url, _ = lying([5000] * 4, **answers)
    with pytest.raises(error, match=message):
        run_fetch(FetchUrl(url))


def test_server_that_tells_no_versions_is_asked_once(run_fetch: Fetcher, lying):
    url, commands = lying([5000, 5000], MDTM="500 no", SIZE="500 no")
    (file,) = run_fetch(FetchUrl(url))
    assert (file.path.read_bytes(), file.state, file.event_time) == (BODY, None, NOW)
    asked = len(commands)
    assert run_fetch(FetchUrl(url), has_data=True) == []
    assert len(commands) == asked
    assert len(run_fetch(FetchUrl(url), has_data=True, fetch_uncacheable=True)) == 1


def test_size_is_limited(run_fetch: Fetcher, lying):
    url, _ = lying([5000], SIZE="500 no")
    with pytest.raises(FetchError, match="more than the 1500 bytes that are allowed"):
        run_fetch(FetchUrl(url), max_bytes=1500)


def test_ftps_is_within_tls_from_the_first_byte_on(
    run_fetch: Fetcher, lying, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    certificate, key = self_signed(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    url, commands = lying([5000] * 2, tls=context)
    with pytest.raises(FetchError, match="certificate is not trusted") as caught:
        run_fetch(FetchUrl(url))
    assert "SSL_CERT_FILE" in (caught.value.hint or "")
    assert commands == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert run_fetch(FetchUrl(url))[0].path.read_bytes() == BODY
    assert "PROT P" in commands
