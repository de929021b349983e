"""`odf verify-result` of a shared table: by a profile file, from a saved proof, in and outside of a workspace."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.conftest import Odf
from support.servers.serving import serving
from support.servers.static_server import static_server

from odfpy.coordinator.workspace import Workspace

ROWS = pa.table({"id": [2, 1], "name": ["b", "a"]})


@pytest.fixture
def profile(tmp_path: Path, odf: Odf, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The profile of a recipient of `sales.eu.folder`, in a folder outside a workspace, with the rows they have read."""
    publisher, recipient = tmp_path / "publisher", tmp_path / "recipient"
    workspace = Workspace.init(publisher)
    recipient.mkdir()
    (publisher / "files").mkdir()
    pq.write_table(ROWS, publisher / "files/a.parquet")
    pq.write_table(ROWS.take([1, 0]), recipient / "rows.parquet")
    pq.write_table(ROWS.slice(1), recipient / "fewer.parquet")
    with serving(workspace) as server:
        monkeypatch.chdir(publisher)
        assert odf("config", "set", "sharing.url", server.url).code == 0
        assert odf("share", "add", "sales").code == 0
        assert odf("share", "add", "sales.eu.folder", "--parquet", "files").code == 0
        assert odf("recipient", "add", "acme").code == 0
        assert odf("grant", "add", "acme", "sales").code == 0
        (publisher / "acme.share").rename(recipient / "acme.share")
        monkeypatch.chdir(recipient)
        yield recipient / "acme.share"


def test_by_a_profile_and_later_from_the_saved_proof(odf: Odf, profile: Path) -> None:
    table = "acme.share#sales.eu.folder"
    done = odf("verify-result", table, "--rows", "rows.parquet", "--save", "proof.json")
    assert done.code == 0, done.err
    assert "sales.eu.folder for acme, 2 rows, signed by me" in done.out
    assert "rows.parquet matches the signed rows" in done.out
    found = odf("verify-result", "proof.json", "--rows", "rows.parquet", "--key", "me", "-o", "json").json
    assert (found["ok"], found["table"], found["rows"], found["comparedDataset"]) == (True, "sales.eu.folder", 2, False)
    for file in (table, "proof.json"):
        wrong = odf("verify-result", file, "--rows", "fewer.parquet")
        assert wrong.code == 1
        assert "1 instead of 2 (E722)" in wrong.err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["acme.share#sales.eu.folder"], 2, "no rows to compare"),
        (["acme.share#sales.eu"], 2, "not a table"),
        (["acme.share#sales.eu.else"], 2, "no such share, schema or table"),
        (["acme.share#sales.eu.folder", "--version", "7"], 2, "no version 7"),
        (["acme.share#sales.eu.folder", "--rows", "none.parquet"], 1, "No such file: none.parquet"),
        (["none.share#sales.eu.folder"], 1, "No such file: none.share"),
        (["rows.parquet#sales.eu.folder"], 2, "not a profile file"),
        (["rows.parquet"], 1, "not JSON"),
        (["proof.json", "--version", "1"], 2, "are for shared tables"),
    ],
)
def test_what_is_wrong_is_said(odf: Odf, profile: Path, arguments: list[str], code: int, says: str) -> None:
    done = odf("verify-result", *arguments)
    assert (done.code, says in done.err) == (code, True), done.err
    assert "Traceback" not in done.err


def test_other_servers_have_no_proofs(odf: Odf, profile: Path, tmp_path: Path) -> None:
    with static_server(tmp_path) as server:
        tree = {"shareCredentialsVersion": 1, "endpoint": f"{server.url}/", "bearerToken": "secret"}
        profile.write_text(json.dumps(tree))
        done = odf("verify-result", "acme.share#sales.eu.folder", "--rows", "rows.parquet")
    assert done.code == 2
    assert "gives no proof" in done.err
    assert "secret" not in done.err
