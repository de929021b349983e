"""Where manifests come from: files, folders, standard input, URLs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from support.chains.workspaces import root
from support.servers.static_server import StaticServer, static_server

from odfpy.coordinator.manifests import MAX_MANIFEST_SIZE, load
from odfpy.errors import MalformedManifest, NotFound, OdfError, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "manifests"
    path.mkdir()
    (path / "a.yaml").write_text(root("a"))
    (path / "two words.yaml").write_text(f"{root('b')}---{root('c')}")
    return path


@pytest.fixture
def site(folder: Path) -> Iterator[StaticServer]:
    with static_server(folder) as server:
        yield server


def names(*sources: str | Path, stdin: bytes = b"") -> list[str]:
    return [str(snapshot.name) for snapshot in load(sources, stdin=io.BytesIO(stdin))]


def test_all_kinds_of_sources_stand_next_to_each_other(folder: Path, site: StaticServer):
    found = names(
        folder / "a.yaml", f"{site.url}/two%20words.yaml", "-", f"file://{folder}/a.yaml", stdin=root("d").encode()
    )
    assert found == ["a", "b", "c", "d", "a"]


def test_a_file_may_be_named_from_here(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    (folder / "x:y.yaml").write_text(root("odd"))
    assert names("file:a.yaml", "file:two%20words.yaml", "x:y.yaml") == ["a", "b", "c", "odd"]


def test_redirects_are_followed(site: StaticServer):
    def moved(handler: SimpleHTTPRequestHandler) -> None:
        handler.send_response(302)
        handler.send_header("Location", "/a.yaml")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    site.special["/old.yaml"] = moved
    assert names(f"{site.url}/old.yaml") == ["a"]


def test_errors_show_the_url_without_its_secrets(site: StaticServer):
    url = site.url.replace("//", "//me:pass@") + "/nope.yaml?token=secret"
    with pytest.raises(NotFound) as caught:
        names(url)
    assert caught.value.message == f"There is no manifest at {site.url}/nope.yaml?..."


def test_a_bad_manifest_is_named_with_its_url_and_line(folder: Path, site: StaticServer):
    (folder / "bad.yaml").write_text(root("a").replace("sourceName", "sourcName"))
    with pytest.raises(MalformedManifest, match=rf"^{site.url}/bad.yaml, line 9, column 7: .*sourcName"):
        names(f"{site.url}/bad.yaml")


def test_a_web_page_is_no_manifest(folder: Path, site: StaticServer):
    (folder / "page.html").write_text("<html>a manifest, nicely printed</html>")
    with pytest.raises(MalformedManifest, match="is a web page"):
        names(f"{site.url}/page.html")


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_other_answers_of_servers_are_errors(site: StaticServer, status: int):
    site.special["/x.yaml"] = lambda handler: handler.send_error(status)
    with pytest.raises(OdfError, match=f"status {status}"):
        names(f"{site.url}/x.yaml")


def test_nobody_listens():
    with pytest.raises(OdfError, match=r"http://127\.0\.0\.1:1/x\.yaml"):
        names("http://127.0.0.1:1/x.yaml")


@pytest.mark.parametrize("announced", [True, False])
def test_a_url_does_not_end(site: StaticServer, announced: bool):
    def endless(handler: SimpleHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length" if announced else "Connection", str(1 << 40) if announced else "close")
        handler.end_headers()
        with suppress(OSError):  # the client hangs up
            while True:
                handler.wfile.write(b"# " + bytes(1 << 16))
        handler.close_connection = True

    site.special["/x.yaml"] = endless
    with pytest.raises(OdfError, match="bytes"):
        names(f"{site.url}/x.yaml")


def test_files_and_standard_input_have_the_same_limit(folder: Path):
    large = folder / "large.yaml"
    with large.open("wb") as file:
        file.truncate(MAX_MANIFEST_SIZE + 1)
    for source in (large, "-"):
        with large.open("rb") as stream, pytest.raises(OdfError, match="more than 16 MiB") as caught:
            load([source], stdin=stream)
        assert "odf ingest" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "url", ["s3://bucket/x.yaml", "ftp://h/x.yaml", "git@github.com:x/y.yaml", "file://other/x.yaml"]
)
def test_other_urls_are_refused(url: str):
    with pytest.raises((UsageError, NotFound)) as caught:
        names(url)
    assert caught.value.hint or isinstance(caught.value, NotFound)


def test_nothing_is_there(folder: Path):
    for source in (folder / "nope.yaml", f"file://{folder}/nope.yaml"):
        with pytest.raises(NotFound, match=r"nope\.yaml"):
            names(source)
    (folder / "empty").mkdir()
    with pytest.raises(NotFound, match="No manifests"):
        load([folder / "empty"], recursive=True)
