"""`odf archive` with the URL of an archive on a server."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.archive.served import Served

from odfpy.cli.app import run
from odfpy.repository.credentials import VARIABLE

Odf = Callable[..., tuple[int, str, str]]


@pytest.fixture
def odf(served: Served, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Odf:
    """Runs a command outside of any workspace, with a token that may write."""
    monkeypatch.setenv(VARIABLE, served.writer.token or "")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capfd.readouterr()
        code = run(["archive", *arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.mark.parametrize("place", ["logs", ""])
def test_files_are_pushed_found_and_fetched(served: Served, odf: Odf, tmp_path: Path, place: str) -> None:
    url = f"{served.server.url}/{place}".rstrip("/")
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text(f"content of {name}\n")
    said = ("--what", "nginx", "--where", "web1", "--start", "2024-03-01", "--archive", url)
    code, out, err = odf("push", str(tmp_path / "a.log"), str(tmp_path / "b.log"), *said)
    assert (code, err) == (0, "")
    assert out.count(f"to {url}/v0/archive/files/") == 2
    assert odf("push", str(tmp_path / "a.log"), *said)[1].startswith("Already archived: ")

    code, listed, _ = odf("list", "nginx", "--start", "2024-03-01", "--archive", url)
    assert (code, len(listed.splitlines())) == (0, 2)
    assert odf("list", "nginx", "--start", "2024-03-01", "--archive", url, "--format", "http")[1] == listed
    code, fetched, _ = odf("fetch", "--filename-template", "{where}-{name}", stdin=listed)
    assert (code, sorted(fetched.split())) == (0, ["web1-a.log", "web1-b.log"])
    assert Path("web1-a.log").read_text() == "content of a.log\n"

    first = listed.splitlines()[0]
    shown = json.loads(odf("show", first, "-o", "json")[1])
    assert (shown[0]["what"], shown[0]["status"]) == ("nginx", "kept")
    code, text, _ = odf("cat", *listed.split())
    assert (code, sorted(text.splitlines())) == (0, ["content of a.log", "content of b.log"])
    code, latest, _ = odf("latest", "nginx", "web1", "--lookback", "99999", "--archive", url)
    assert (code, latest.strip() in listed) == (0, True)


def test_errors_are_short_and_say_what_to_try(served: Served, odf: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{served.server.url}/logs"
    code, _, err = odf("latest", "nginx", "web1", "--archive", url)
    assert code == 1
    assert 'No "nginx" files found in last 14 days from "web1"' in err
    code, _, err = odf("cat", f"{url}/v0/archive/files/none/data")
    assert (code, "no file 'none'" in err) == (1, True)
    monkeypatch.delenv(VARIABLE)
    code, _, err = odf("list", "nginx", "--start", "2024-03-01", "--archive", url)
    assert (code, "odf login" in err) == (1, True)
    code, _, err = odf("withdraw", "x", "--why", "x", "--archive", url)
    assert (code, "on a server" in err, "odf -w FOLDER archive" in err) == (2, True, True)
