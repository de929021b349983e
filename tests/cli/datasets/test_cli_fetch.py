"""`odf pull` from a web server."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.servers.static_server import send, static_server

from odfpy.cli.app import run
from odfpy.coordinator.workspace import Workspace

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}/a.csv?key=${{{{ env.SOURCE_KEY }}}}"}}
      read: {{kind: Csv, header: true, schema: {{fields: [{{name: event_time, type: Timestamp}}]}}}}
      merge: {{kind: Append}}
"""


def test_pull_tells_how_to_fetch_again_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SOURCE_KEY", "s3cr3t")
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as server:
        server.special["s3cr3t"] = lambda handler: send(handler, b"event_time\n2024-01-01\n")
        (tmp_path / "polled.yaml").write_text(MANIFEST.format(url=server.url))
        Workspace.init(tmp_path)
        assert run(["-w", str(tmp_path), "add", str(tmp_path / "polled.yaml")]) == 0
        for options in ([], [], ["--fetch-uncacheable", "-v"]):
            assert run(["-w", str(tmp_path), "pull", "polled", *options]) == 0
        assert len(server.requests) == 2
        del server.special["s3cr3t"]
        assert run(["-w", str(tmp_path), "pull", "polled", "--fetch-uncacheable", "-v"]) == 1
    out, err = capsys.readouterr()
    assert "--fetch-uncacheable" in out + err
    assert "404" in err
    assert "s3cr3t" not in out + err
    assert Workspace.open(tmp_path).datasets.summary("polled").num_records == 2
    monkeypatch.delenv("SOURCE_KEY")
    assert run(["-w", str(tmp_path), "pull", "polled", "--fetch-uncacheable"]) == 1
    assert "SOURCE_KEY is not set" in capsys.readouterr().err
