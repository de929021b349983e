"""From a new relay to an answer, with commands alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Odf

from odfpy.coordinator.workspace import Workspace


def test_commands_from_a_relay_to_an_answer(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Workspace.init(tmp_path)
    assert odf("relay", "init", "na").code == 0
    assert odf("relay", "apply", "-f", "web").code == 0
    assert odf("relay", "cert", "new", "ann", "--to", ".").code == 0
    [certificate] = tmp_path.glob("ann-*.pem")
    keys = ("--cert", str(certificate), "--key", str(certificate.with_suffix(".key")), "--ca", ".odf/relay/ca.pem")
    program = [sys.executable, "-m", "odfpy", "relay", "serve", "--host", "localhost", "--port", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            location = server.stdout.readline().split()[-1]
            asked = ("--relay", location, *keys)
            columns = odf("web", "entities", *asked, "-o", "json").json
            assert (columns[0]["entity"], columns[0]["type"]) == ("customer", "int64")
            found = odf("web", "sql", "SELECT count(*) AS n FROM customer", *asked, "-o", "json")
            assert found.json[0]["n"] > 0
            wrong = odf("web", "sql", "SELECT nope FROM customer", *asked)
            assert (wrong.code, "nope" in wrong.err) == (1, True)
            torn = odf("web", "sql", "SELEC * FROM customer", *asked)
            assert torn.code == 1
            assert "\\x1b" not in torn.err
            assert "SELEC * FROM customer" in torn.err
            nowhere = odf("web", "entities", "--relay", "nonsense", *keys)
            assert (nowhere.code, "grpc+tls://HOST:PORT" in nowhere.err) == (2, True)
        finally:
            server.terminate()
        assert server.wait(30) == 0
    gone = odf("web", "entities", *asked)
    assert (gone.code, "cannot be reached" in gone.err) == (1, True)
    assert odf("relay", "serve", "--host", "0.0.0.0").code == 2
