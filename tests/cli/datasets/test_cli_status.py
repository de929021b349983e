"""`odf status`: what there is to do, with the command to type, and nothing where there is nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder

from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import IntegrityError, OdfError

if TYPE_CHECKING:
    from cli.conftest import Odf

RATES, UPPER = "com.example.rates", "com.example.upper"


def add_row(odf: Odf, number: int, name: str = RATES) -> None:
    row = f'{{"event_time":"2024-02-01T00:00:00Z","id":{number},"name":"z"}}\n'
    assert odf("ingest", name, "--stdin", stdin=row.encode()).code == 0


def remarks(odf: Odf, *words: str) -> list[tuple[str, str]]:
    return [(one["name"], one["status"]) for one in odf("status", *words, "-o", "json").json]


def test_nothing_to_do(odf: Odf, workspace: Path) -> None:
    shown = odf("status")
    assert (shown.code, shown.out, shown.err) == (0, "", "6 datasets, 6 with nothing to do\n")
    assert odf("status", "-o", "json").out == "[]\n"
    assert "No dataset matches the pattern" in odf("status", "org.%").says


def test_what_is_behind_and_what_waits_for_it(odf: Odf, workspace: Path) -> None:
    manifest = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.top
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: com.example.upper, alias: upper}]
      transform: {kind: Sql, engine: datafusion, query: "select event_time, id, name from upper"}
"""
    (workspace / "top.yaml").write_text(manifest)
    assert odf("add", "top.yaml").code == 0
    assert odf("pull", "com.example.top").code == 0
    assert odf("status").code == 0
    add_row(odf, 20)
    add_row(odf, 21)
    shown = odf("status")
    assert shown.code == 1
    assert "com.example.rates has 2 more records  odf pull com.example.upper" in shown.out
    assert "waits for com.example.upper" in shown.out
    assert remarks(odf, "com.example.top") == [("com.example.top", "stale")], "what is not asked for counts as well"
    assert odf("pull", "com.example.top", "--recursive").code == 0
    assert odf("status").code == 0


def test_a_pull_that_failed_is_remembered_until_one_does_not(odf: Odf, workspace: Path) -> None:
    manifest = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "file://%s/polled.csv"}
      read: {kind: Csv, header: true, ddlSchema: [event_time TIMESTAMP, id INT]}
      merge: {kind: Ledger, primaryKey: [id]}
"""
    (workspace / "polled.csv").write_text("event_time,id\n2024-01-01T00:00:00Z,1\n")
    (workspace / "polled.yaml").write_text(manifest % workspace)
    assert odf("add", "polled.yaml").code == 0
    assert odf("pull", "com.example.polled").code == 0
    (workspace / "polled.csv").write_text("event_time,id\nnever,2\n")
    assert odf("pull", "com.example.polled").code == 1
    (remark,) = odf("status", "com.example.polled", "-o", "json").json
    assert (remark["status"], remark["command"]) == ("failed", "odf pull com.example.polled")
    assert "never" in remark["what"]
    assert odf("verify", "com.example.polled").code == 0, "the record is no damage"
    (workspace / "polled.csv").write_text("event_time,id\n2024-01-02T00:00:00Z,2\n")
    assert odf("pull", "com.example.polled").code == 0
    assert remarks(odf, "com.example.polled") == []


def flip(file: Path) -> bytes:
    before = file.read_bytes()
    file.write_bytes(before[:-20] + bytes([before[-20] ^ 1]) + before[-19:])
    return before


def test_a_failed_verification_is_told_until_one_is_fine(odf: Odf, workspace: Path) -> None:
    file = min((dataset_folder(workspace, RATES) / "data").iterdir())
    before = flip(file)
    assert odf("verify", RATES, "--integrity").code == 1
    shown = odf("status", "-o", "json")
    (remark,) = shown.json
    assert shown.code == 1
    assert (remark["name"], remark["status"]) == (RATES, "damaged"), "what is derived from it waits for nothing"
    assert remark["what"].startswith("verification failed, 2")
    assert "Damaged slice" in remark["what"]
    assert remark["command"] == f"odf verify {RATES} --repair"
    add_row(odf, 20)
    assert (RATES, "damaged") in remarks(odf, RATES), "more blocks mend nothing"
    file.write_bytes(before)
    assert odf("verify", RATES, "--integrity").code == 0
    assert remarks(odf, RATES) == []


def test_a_failed_verification_of_a_history_that_is_gone_is_not_told(odf: Odf, workspace: Path) -> None:
    head = Workspace.open(workspace).storage.get(RATES).state.head
    data = dataset_folder(workspace, RATES) / "data"
    before = set(data.iterdir())
    add_row(odf, 20)
    (newest,) = set(data.iterdir()) - before
    flip(newest)
    assert odf("verify", RATES, "--integrity").code == 1
    assert remarks(odf, RATES) == [(RATES, "damaged")]
    assert odf("reset", RATES, str(head), "-y").code == 0
    assert remarks(odf, RATES) == []


def test_a_pull_that_failed_for_damage_is_forgotten_once_the_dataset_is_verified(odf: Odf, workspace: Path) -> None:
    failed = OdfError("Damaged object"), IntegrityError("Damaged object")
    dataset = Workspace.open(workspace).storage.get(RATES)
    for error in failed:
        remember(dataset, error)
        assert remarks(odf, RATES) == [(RATES, "failed")]
    assert odf("verify", RATES, "--integrity").code == 0
    assert remarks(odf, RATES) == []
    remember(dataset, failed[0])
    assert odf("verify", RATES, "--integrity").code == 0
    assert remarks(odf, RATES) == [(RATES, "failed")], "it failed for something else"


def test_what_was_not_pushed_and_what_other_places_say(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    assert odf("push", RATES, "--to", f"{mirror}/").code == 0
    assert odf("status").code == 0
    add_row(odf, 20)
    shown = odf("status", RATES)
    assert (shown.code, "1 block more than file://" in shown.out) == (1, True)
    shutil.rmtree(mirror)
    assert remarks(odf, RATES) == [(RATES, "unpushed")], "nobody was asked"
    assert "does not have it" in odf("status", RATES, "--remote").out
    assert odf("push", RATES).code == 0
    assert remarks(odf, RATES, "--remote") == []


def test_copies_beside_their_origin(odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror"
    assert odf("push", RATES, "--to", f"{mirror}/").code == 0
    assert odf("init", str(tmp_path / "copies")).code == 0
    monkeypatch.chdir(tmp_path / "copies")
    assert odf("pull", f"{mirror}/{RATES}").code == 0
    assert remarks(odf, "--remote") == []
    monkeypatch.chdir(workspace)
    add_row(odf, 20)
    assert odf("push", RATES).code == 0
    monkeypatch.chdir(tmp_path / "copies")
    assert remarks(odf) == [], "without asking, nothing is known of it"
    shown = odf("status", "--remote")
    assert (shown.code, "has 1 block more  odf pull com.example.rates" in shown.out) == (1, True)
    monkeypatch.chdir(workspace)
    assert odf("reset", RATES, "2", "--yes").code == 0
    add_row(odf, 30)
    assert remarks(odf, RATES, "--remote") == [(RATES, "diverged")]
    shutil.rmtree(mirror)
    monkeypatch.chdir(tmp_path / "copies")
    assert remarks(odf, "--remote") == [(RATES, "failed")]


def test_another_history_of_an_input(odf: Odf, workspace: Path) -> None:
    assert odf("reset", RATES, "2", "--yes").code == 0
    again = f"odf pull {UPPER} --reset-derivatives-on-diverged-input"
    assert commands(odf) == {UPPER: [("diverged", again)]}
    assert odf("pull", UPPER).code == 1
    assert commands(odf) == {UPPER: [("diverged", again)]}, "the pull that failed would fail again"
    add_row(odf, 30)
    assert odf(*again.split()[1:]).code == 0
    assert commands(odf) == {}


def commands(odf: Odf, *words: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for one in odf("status", *words, "-o", "json").json:
        found.setdefault(one["name"], []).append((one["status"], one["command"]))
    return found


def pushed(odf: Odf, tmp_path: Path) -> str:
    """What a dataset is called where it was pushed to, after two more rows."""
    for number in (20, 21):
        add_row(odf, number)
    assert odf("pull", UPPER).code == 0
    assert odf("push", RATES, "--to", f"{tmp_path}/mirror/").code == 0
    assert commands(odf) == {}
    return f"file://{tmp_path}/mirror/{RATES}"


@pytest.mark.parametrize("remote", [[], ["--remote"]])
def test_what_was_compacted_after_it_was_pushed(remote: list[str], odf: Odf, workspace: Path, tmp_path: Path) -> None:
    place = pushed(odf, tmp_path)
    assert odf("compact", RATES, "--yes").code == 0
    assert odf("pull", UPPER, "--reset-derivatives-on-diverged-input").code == 0
    force = ("diverged", f"odf push {RATES} --force")
    assert commands(odf, *remote) == {RATES: [force]}, "what is derived from it has no part in that"
    assert f"1 block only here, 3 blocks only at {place}" in odf("status", *remote).out
    assert odf("gc").code == 0
    unknown = ("diverged", f"odf status {RATES} --remote")
    assert commands(odf, *remote) == {RATES: [force if remote else unknown]}
    assert odf(*force[1].split()[1:]).code == 0
    assert commands(odf, *remote) == {}


@pytest.mark.parametrize("remote", [[], ["--remote"]])
def test_what_was_reset_after_it_was_pushed(remote: list[str], odf: Odf, workspace: Path, tmp_path: Path) -> None:
    place = pushed(odf, tmp_path)
    number = Workspace.open(workspace).datasets.state(RATES).sequence_number
    assert odf("reset", RATES, str(number - 1), "--yes").code == 0
    assert commands(odf, RATES, *remote) == {RATES: [("diverged", f"odf push {RATES} --force")]}
    assert f"1 block only at {place}" in odf("status", RATES, *remote).out
    told = odf("push", RATES)
    assert (told.code, "has 1 block more than are here" in told.err) == (0, True)
    add_row(odf, 30)
    assert f"1 block only here, 1 block only at {place}" in odf("status", RATES, *remote).out


def test_a_place_that_somebody_else_has_pushed_to(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = pushed(odf, tmp_path)
    shutil.copytree(workspace, tmp_path / "other")
    monkeypatch.chdir(tmp_path / "other")
    add_row(odf, 30)
    assert odf("push", RATES).code == 0
    monkeypatch.chdir(workspace)
    assert commands(odf) == {}
    assert commands(odf, "--remote") == {RATES: [("behind", f"odf pull {place}")]}, (
        "nobody is told to drop what is of others"
    )
    assert f"{place} has 1 block more" in odf("status", "--remote").out


def test_a_derivative_without_a_query_or_an_input_is_told_what_helps(odf: Odf, workspace: Path) -> None:
    """Neither a pull nor a repair does."""
    upper = "com.example.upper"
    assert odf("reset", upper, "0", "--yes").code == 0
    assert commands(odf, upper) == {upper: [("behind", "odf add MANIFEST --replace")]}
    assert "--replace" in odf("pull", upper).says
    (lost,) = odf("verify", upper, "-o", "json").json[0]["unreferenced"]["following"]
    assert odf("reset", upper, lost["head"], "--yes").code == 0
    assert odf("pull", upper).code == 0
    assert odf("status").code == 0
    assert odf("delete", RATES, "--force", "--yes").code == 0
    for _ in range(2):  # also after a pull that was refused
        for remark in odf("status", upper, "-o", "json").json:
            assert "`odf pull REPOSITORY/NAME`" in remark["what"]
            assert remark["command"] is None
        assert odf("pull", upper).code == 1


def test_damage_and_missing_signatures(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_SIGNATURES_SIGN", "false")
    add_row(odf, 20, "com.example.cities")
    assert odf("status").code == 0, "who does not want to sign is not told"
    monkeypatch.setenv("ODF_SIGNATURES_SIGN", "true")
    assert remarks(odf) == [("com.example.cities", "unsigned")]
    assert odf("status").code == 0, "that is a choice"
    (dataset_folder(workspace, "com.example.stock") / "refs" / "head").write_text("nothing")
    shown = odf("status")
    assert (shown.code, "damaged" in shown.out) == (1, True)


def test_a_signature_of_a_revoked_key_is_named_until_the_next_commit(odf: Odf, workspace: Path) -> None:
    add_row(odf, 19, "com.example.cities")
    assert ("com.example.cities", "unsigned") not in remarks(odf)
    assert odf("key", "revoke", "--reason", "compromised", "--yes").code == 0
    shown = odf("status", "com.example.cities")
    assert (shown.code, "a key that signed the last block was revoked" in shown.out) == (0, True)
    add_row(odf, 20, "com.example.cities")
    assert ("com.example.cities", "unsigned") not in remarks(odf)
