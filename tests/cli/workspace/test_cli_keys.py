"""`odf key`, and what the command line says of signatures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odfpy.chain.signatures import path_of
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.identity import KeyPair

if TYPE_CHECKING:
    from cli.conftest import Odf

ALICE = str(KeyPair(b"a" * 32).actor)
NAME = "com.example.rates"


def test_keys_are_shown_trusted_and_forgotten(odf: Odf):
    assert odf("key", "list").err == "No keys; yours is created with the first commit, or by `odf key show`.\n"
    mine = odf("key", "show").out.strip()
    assert odf("key", "show", "-o", "json").json == {"name": "me", "key": mine}
    assert odf("key", "trust", "alice", ALICE).err == f"alice is {ALICE}\n"
    assert odf("key", "trust", "ALICE", ALICE).code == 0
    assert odf("key", "list", "-o", "json").json == [{"name": "me", "key": mine}, {"name": "ALICE", "key": ALICE}]
    assert odf("key", "show", "alice").out == f"{ALICE}\n"
    assert odf("key", "untrust", "alice").err == f"Forgot ALICE ({ALICE})\n"
    assert odf("key", "show", "alice").says.startswith("error: No key is trusted as 'alice' (E653)")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["show", "nobody"], 1, "No key is trusted as 'nobody'"),
        (["show", "did:key:zzz"], 2, "Not an ed25519 key"),
        (["trust", "alice"], 2, "Missing argument 'KEY'"),
        (["trust", "owner", ALICE], 2, "Not a name for a key: 'owner'"),
        (["trust", "a,b", ALICE], 2, "Not a name for a key: 'a,b'"),
        (["trust", "", ALICE], 2, "Not a name for a key: ''"),
        (["trust", "alice", "did:odf:fed01"], 2, "Not a key: 'did:odf:fed01'"),
        (["trust", "alice", "ssh-ed25519 AAAA"], 2, "Not a key"),
        (["untrust", "alice"], 1, "No key is trusted as 'alice'"),
        (["sign"], 2, "No such command: key sign"),
    ],
)
def test_wrong_input_is_told(arguments: list[str], code: int, says: str, odf: Odf):
    found = odf("key", *arguments)
    assert found.code == code
    assert says in found.says


def test_a_name_stays_with_its_key(odf: Odf):
    odf("key", "trust", "alice", ALICE)
    other = str(KeyPair(b"b" * 32).actor)
    assert "Another key is trusted as alice" in odf("key", "trust", "Alice", other).says
    assert odf("key", "show", "alice").out == f"{ALICE}\n"


def test_what_is_required_must_be_known(odf: Odf, workspace: Path):
    assert odf("config", "set", "signatures.require", "a,,b").code == 2
    assert odf("config", "set", "signatures.require", "alice").code == 0
    found = odf("pull", str(workspace / ".odf" / "datasets" / "nothing"), "--as", "x")
    assert "No key is trusted as 'alice' (E653)" in found.err


def test_log_and_verify_say_who(odf: Odf, workspace: Path):
    assert odf("log", NAME, "-n", "1").out.splitlines()[2].startswith("signed by ")
    assert "signed by " in odf("verify", NAME, "--integrity").out
    (tree,) = odf("log", NAME, "-n", "1", "-o", "json").json
    assert [set(one) for one in tree["signatures"]] == [{"signer", "name", "time"}] * 2
    key = tree["signatures"][0]["signer"]
    odf("key", "trust", "carol", key)
    assert odf("log", NAME, "-n", "1").out.splitlines()[2] == "signed by carol, owner"
    assert "# signed by carol, owner" in odf("log", NAME, "-n", "1", "-o", "yaml").out


def test_a_forged_signature_is_seen_in_the_log_and_fails_the_verification(odf: Odf, workspace: Path):
    opened = Workspace.open(workspace)
    block = next(opened.datasets.log(NAME))
    file = opened.storage.get(NAME).folder / path_of(block.hash)
    tree = json.loads(file.read_text())
    tree["content"]["signatures"][0]["proof"]["verificationMethod"] = ALICE
    file.write_text(json.dumps(tree))
    assert f"signed NOT VALID: Forged signature: Block {block.block.sequence_number}" in odf("log", NAME, "-n", "1").out
    found = odf("verify", NAME, "--integrity")
    assert found.code == 1
    assert "NOT VALID" in found.out
    assert "(E650)" in found.out


def test_a_pull_says_which_keys_were_revoked(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"file://{tmp_path}/public/rates"
    key = odf("key", "show").out.strip()
    line = b'{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n'
    assert odf("ingest", NAME, "--stdin", stdin=line).code == 0
    assert odf("push", NAME, "--to", place).code == 0
    with monkeypatch.context() as others:
        others.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
        assert odf("clone", place, tmp_path / "copy").code == 0
    assert odf("key", "revoke", "--reason", "compromised", "--yes").code == 0
    assert odf("push", NAME).code == 0
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
    told = odf("pull", "rates", "-w", tmp_path / "copy").err.splitlines()
    assert len(told) == 2
    assert told[1].startswith(f"  note: the key {key} was revoked at ")
    assert told[1].endswith("(compromised), by itself")
    assert len(odf("pull", "rates", "-w", tmp_path / "copy").err.splitlines()) == 1
