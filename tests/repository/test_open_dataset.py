"""Where datasets can be: paths and URLs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.chains.small_datasets import make_dataset

from odfpy.chain.layout import DatasetLayout
from odfpy.errors import InvalidValue
from odfpy.repository.locations.open import normalize_url, open_dataset


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A dataset in `a b/ü#1?`, below the current folder and home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    make_dataset(DatasetLayout.local(tmp_path / "a b" / "ü#1?"))
    return tmp_path


@pytest.mark.parametrize(
    "text",
    [
        "{folder}/a b/ü#1?",
        "{folder}/a b/ü#1?/",
        "./a b/ü#1?",
        "a b/ü#1?",
        "~/a b/ü#1?",
        "file://{folder}/a%20b/%C3%BC%231%3F",
        "file://localhost{folder}/a%20b/%C3%BC%231%3F/",
        "file:{folder}/a%20b/%C3%BC%231%3F",
        "FILE://{folder}/a%20b/%C3%BC%231%3F",
    ],
)
def test_folder_is_opened_by_path_and_by_file_url(folder: Path, text: str):
    text = text.format(folder=folder)
    assert open_dataset(text).chain.state().kind.value == "Root"
    assert normalize_url(text) == (folder / "a b" / "ü#1?").as_uri()


@pytest.mark.parametrize("url", ["http://h/x", "https://user:pw@h:8443/a/b/", "http://[::1]:80/x"])
def test_server_is_not_asked_before_something_is_read(url: str):
    assert not open_dataset(url).blocks.writable
    assert normalize_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "s3://bucket/name",
        "s3://bucket",
        "s3+http://127.0.0.1:1/bucket/a/b/",
        "s3+https://h/bucket",
        "gs://b_1/x",
        "az://c/x",
    ],
)
def test_bucket_is_not_asked_before_something_is_read(url: str, monkeypatch):
    monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", "AccountName=name;AccountKey=a2V5")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    assert open_dataset(url).blocks.writable
    assert normalize_url(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "a\0b",
        "a\nb",
        "htp://host/x",
        "ftp://host/x",
        "http://",
        "http:///x",
        "http://host/x?token=1",
        "http://host/x#part",
        "http://[::1/x",
        "odf+https://[host]/x",
        "https://\u2100.com/x",
        "s3://",
        "s3:///x",
        "s3://bucket//x",
        "s3://bucket/x?y",
        "s3+http://host",
        "s3+http://host:port/bucket",
        "s3+http:///bucket/x",
        "gs://bucket/x#y",
        "file://host/x",
        "file://[host/x",
        "file:relative",
        "file:///x%00y",
        "file:///x?y",
        "~nobody-of-that-name/x",
    ],
)
def test_what_is_no_place_is_refused(text: str):
    with pytest.raises(InvalidValue) as caught:
        open_dataset(text)
    assert caught.value.message


def test_keys_in_the_url_of_a_bucket_are_refused_and_not_shown():
    with pytest.raises(InvalidValue, match="The URL must not contain keys") as caught:
        normalize_url("s3+http://key:s3cr3t@host/bucket/name")
    assert "s3cr3t" not in str(caught.value) + (caught.value.hint or "")


def test_misspelt_scheme_gets_a_suggestion():
    with pytest.raises(InvalidValue) as caught:
        open_dataset("htps://host/x")
    assert "https" in (caught.value.hint or "")


def test_opening_a_folder_loads_neither_network_nor_arrow():
    program = (
        "import sys; from odfpy.repository import registry; from odfpy.repository.transfer import simple; from odfpy.repository.locations import open; open.open_dataset('/nothing')\n"
        "print(*{'pyarrow', 'ssl', 'http.client', 'concurrent.futures', 'urllib.request'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
