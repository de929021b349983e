"""From a new relay to an answer, with commands alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Odf

from odfpy.coordinator.workspace import Workspace
from odfpy.federation.authority import Authority


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
            _keep(odf, asked)
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
    _verify(odf, keys[-1], tmp_path)
    gone = odf("web", "entities", *asked)
    assert (gone.code, "cannot be reached" in gone.err) == (1, True)
    assert odf("relay", "serve", "--host", "0.0.0.0").code == 2


def _keep(odf: Odf, asked: tuple[str, ...]) -> None:
    query = "SELECT * FROM customer"
    kept = odf("web", "sql", query, "--into", "customers", *asked)
    assert (kept.code, kept.out) == (0, ""), kept.err
    assert "rows as customers, signed by na: odf web verify customers" in kept.err
    again = odf("web", "sql", query, "--into", "customers", *asked)
    assert (again.code, "already exists" in again.err) == (1, True)
    later = odf("web", "sql", query, "--later", "--signed", *asked).out.strip()
    assert odf("web", "fetch", later, "--into", "later", *asked).code == 0
    unsigned = odf("web", "sql", query, "--later", *asked).out.strip()
    refused = odf("web", "fetch", unsigned, "--into", "more", *asked)
    assert (refused.code, "have not signed" in refused.err) == (2, True)
    for wrong in (("--later", "--into", "more"), ("--signed",)):
        assert odf("web", "sql", query, *wrong, *asked).code == 2


def _verify(odf: Odf, authority: str, folder: Path) -> None:
    """Without the relay, which has ended."""
    for name in ("customers", "later"):
        found = odf("web", "verify", name, "--ca", authority)
        assert (found.code, f"{name}: valid" in found.out) == (0, True), found.out
        assert "CN=na" in found.out
    tree = odf("web", "verify", "customers", "--ca", authority, "-o", "json").json
    assert (tree["holds"], tree["findings"], [one["relay"] for one in tree["signed"]]) == (True, [], ["na"])
    other = folder / "other.pem"
    other.write_text(Authority.new("others")[1].facts.pem)
    wrong = odf("web", "verify", "customers", "--ca", str(other))
    assert (wrong.code, "wrong: part 0 (f1)" in wrong.out, "is not valid" in wrong.out) == (1, True, True)
    assert not odf("web", "verify", "customers", "--ca", str(other), "-o", "json").json["holds"]
    for refused in (("customers.parts.1", authority), ("customers", "nowhere.pem")):
        assert odf("web", "verify", refused[0], "--ca", refused[1]).code == 2
