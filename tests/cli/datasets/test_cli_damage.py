"""Damaged files, and folders that cannot be written to: what is damaged is named, the rest goes on working."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.fixtures import KAMU
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.rates"
REPOSITORY = Path(__file__).resolve().parents[3]


def head(folder: Path) -> Path:
    return folder / "blocks" / (folder / "refs" / "head").read_text().strip()


def slices(folder: Path) -> list[Path]:
    return sorted((folder / "data").iterdir())


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


# What is damaged, and a word of the message that says so.
CHAINS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a flipped block": (lambda folder: flip(head(folder)), "Damaged object"),
    "an empty block": (lambda folder: head(folder).write_bytes(b""), "Damaged object"),
    "a missing block": (lambda folder: head(folder).unlink(), "Missing object"),
    "no reference": (lambda folder: (folder / "refs" / "head").unlink(), "no head"),
    "a bad reference": (lambda folder: (folder / "refs" / "head").write_text("x"), "Damaged reference"),
    "an empty reference": (lambda folder: (folder / "refs" / "head").write_text(""), "Damaged reference"),
    "a reference to nothing": (
        lambda folder: (folder / "refs" / "head").write_text("f1620" + 64 * "0"), "Missing object"),
    "no blocks": (lambda folder: shutil.rmtree(folder / "blocks"), "Missing object"),
}  # fmt: skip


@pytest.mark.parametrize("case", CHAINS)
def test_a_damaged_chain_is_named_and_the_others_are_listed(case: str, odf: Odf, workspace: Path) -> None:
    damage, words = CHAINS[case]
    damage(dataset_folder(workspace, NAME))

    listed = odf("list")
    assert listed.code == 1
    assert f"error: {NAME}: " in listed.err
    assert words in listed.says
    assert "hint: " in listed.err
    lines = {line.split()[0]: line.split()[1] for line in listed.out.splitlines()[1:]}
    assert lines.pop(NAME) == "damaged"
    assert len(lines) == 5
    assert set(lines.values()) == {"Root", "Derivative"}
    (marked,) = (record for record in odf("list", "-o", "json").json if record["kind"] == "damaged")
    assert words in marked["error"]

    for command in (["show", NAME], ["log", NAME], ["tail", NAME], ["pull", NAME], ["push", NAME, "--to", "./x"]):
        refused = odf(*command)
        assert refused.code == 1, command
        assert NAME in refused.says
    verified = odf("verify", NAME)
    assert verified.code == 1
    assert f"{NAME}: NOT VALID" in verified.out

    assert odf("show", "com.example.upper").code == odf("tail", "com.example.upper").code == 0
    pulled = odf("pull", "--all", "-o", "json")
    assert pulled.code == 1
    assert {record["name"]: record["outcome"] for record in pulled.json} == {
        NAME: "failed",
        "com.example.upper": "skipped",
        "com.example.cities": "up-to-date",
        "com.example.stock": "up-to-date",
        "com.example.empty": "up-to-date",
        "trades": "up-to-date",
    }
    assert odf("verify", "com.example.cities").code == 0
    assert odf("delete", NAME, "--yes", "--force").code == 0
    assert odf("list").code == 0


@pytest.mark.parametrize("damage", [flip, Path.unlink], ids=["damaged", "missing"])
def test_a_lost_block_is_named_by_its_number_with_what_mends_it(
    damage: Callable[[Path], object], odf: Odf, workspace: Path
) -> None:
    hashes = [record["blockHash"] for record in odf("log", NAME, "-o", "json").json]
    damage(dataset_folder(workspace, NAME) / "blocks" / hashes[1])
    shutil.rmtree(workspace / ".odf" / "cache")
    for done in (odf("list"), odf("verify", NAME)):
        assert f"Block {len(hashes) - 2}: " in done.err + done.out
        assert f"hint: `odf verify {NAME} --repair` fetches it" in done.err + done.out


NAMES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda alias: alias.write_text(""),
    "a path": lambda alias: alias.write_text("../../x\n"),
    "no text": lambda alias: alias.write_bytes(b"\xff\xfe"),
    "no file": lambda alias: alias.unlink(),
    "a folder": lambda alias: (alias.unlink(), alias.mkdir()),
}


@pytest.mark.parametrize("case", NAMES)
def test_a_dataset_that_lost_its_name(case: str, odf: Odf, workspace: Path) -> None:
    folder = dataset_folder(workspace, NAME)
    NAMES[case](folder / "info" / "alias")

    listed = odf("list")
    assert listed.code == 1
    assert f"{folder / 'info' / 'alias'} does not hold the name" in listed.says
    assert "gives it a name" in listed.says
    assert f"{folder.name}  damaged" in listed.out
    assert len(listed.out.splitlines()) == 7
    assert "have lost its name" in odf("tail", NAME).says
    for command in (["pull", "--all"], ["verify", "--all", "--integrity"], ["push", "--all", "--to", "./x/"]):
        done = odf(*command)
        assert done.code == 1
        assert "does not hold the name" in done.err
        assert "com.example.cities" in done.out + done.err

    assert odf("rename", f"did:odf:{folder.name}", "com.example.cities").code == 1
    named = odf("rename", f"did:odf:{folder.name}", NAME)
    assert (named.code, named.err) == (0, f"did:odf:{folder.name} is now {NAME}\n")
    assert odf("list").code == 0


def test_what_is_no_dataset_is_named(odf: Odf, workspace: Path) -> None:
    (workspace / ".odf" / "datasets" / "backup").mkdir()
    listed = odf("list")
    assert (listed.code, len(listed.out.splitlines())) == (1, 8)
    assert "is not named by the id of a dataset" in listed.says


SLICES: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped": (flip, "Damaged slice"),
    "cut": (lambda file: file.write_bytes(file.read_bytes()[:100]), "Damaged slice"),
    "empty": (lambda file: file.write_bytes(b""), "Damaged slice"),
    "missing": (lambda file: file.unlink(), "Missing slice"),
}


@pytest.mark.parametrize("case", SLICES)
def test_a_damaged_slice_is_found_with_its_block_and_file(case: str, odf: Odf, workspace: Path) -> None:
    folder = dataset_folder(workspace, NAME)
    (file,) = slices(folder)
    damage, words = SLICES[case]
    damage(file)

    assert odf("list").code == odf("show", NAME).code == 0
    verified = odf("verify", NAME, "--integrity")
    assert verified.code == 1
    assert f"{NAME}: NOT VALID (4 blocks, 1 data file" in verified.out
    assert words in verified.out
    assert f"    file {file}\n" in verified.out
    assert f"    block 3 {head(folder).name}\n" in verified.out
    (report,) = odf("verify", NAME, "--integrity", "-o", "json").json
    assert (report["ok"], report["findings"][0]["file"]) == (False, str(file))
    if case != "flipped":  # where the damage is decides whether reading meets it
        for command in (["tail", NAME], ["sql", "--engine", "datafusion", "-c", f'select * from "{NAME}"']):
            refused = odf(*command)
            assert refused.code == 1
            assert file.name in refused.says
    assert odf("push", NAME, "--to", "./x").code == 1
    assert not (workspace / "x" / "refs" / "head").exists()


@pytest.mark.parametrize("damaged", [NAME, "com.example.upper"])
def test_the_sum_of_a_verification_begins_with_what_is_well(damaged: str, odf: Odf, workspace: Path) -> None:
    flip(slices(dataset_folder(workspace, damaged))[0])
    verified = odf("verify", NAME, "com.example.upper", "--integrity")
    assert verified.code == 1
    assert verified.err.splitlines()[-1] == "1 verified, 1 not valid"


DOCUMENTS = {"not YAML": "a: [", "no mapping": "- a", "another kind": "kind: X\nversion: 1\ncontent: {}", "empty": ""}


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_damaged_file_of_aliases(case: str, odf: Odf, workspace: Path) -> None:
    file = dataset_folder(workspace, "trades") / "info" / "aliases.yaml"
    assert file.is_file()
    file.write_text(DOCUMENTS[case])
    assert odf("list").code == odf("tail", "trades").code == 0
    refused = odf("pull", "trades")
    assert refused.code == 1
    assert str(file) in refused.says
    assert odf("pull", NAME).code == 0


@pytest.mark.parametrize("case", DOCUMENTS)
def test_a_damaged_file_of_a_repository(case: str, odf: Odf, workspace: Path) -> None:
    assert odf("repo", "add", "mirror", "/srv/mirror").code == 0
    file = workspace / ".odf" / "repos" / "mirror.yaml"
    file.write_text(DOCUMENTS[case])
    for command in (["repo", "list"], ["pull", "mirror/x"], ["push", NAME, "--to", "mirror"]):
        refused = odf(*command)
        assert refused.code == 1
        assert str(file) in refused.says
    assert odf("list").code == odf("pull", NAME).code == 0


CONFIGURATIONS = {
    "not YAML": ("a: [", ["not YAML", "Correct the file"]),
    "no mapping": ("- a", ["No setting"]),
    "an unknown key": ("engine: {memry: 2g}", ["engine.memry", "Did you mean engine.memory?"]),
    "another type": ("fetch: {timeout: soon}", ["fetch.timeout", "a whole number", "'soon'"]),
    "another form": ("engine: {memory: '9'}", ["engine.memory", "from 700m on", "'9'"]),
    "a negative count": ("fetch: {maxSize: -1}", ["fetch.maxSize", "-1"]),
    "no text": ("\udcff", ["config.yaml"]),
}


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_a_damaged_configuration(case: str, odf: Odf, workspace: Path) -> None:
    text, words = CONFIGURATIONS[case]
    file = workspace / ".odf" / "config.yaml"
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    for command in (["config", "list"], ["config", "set", "fetch.timeout", "3"], ["pull", NAME]):
        refused = odf(*command)
        assert refused.code == 1
        assert str(file) in refused.says
        for word in words:
            assert word in refused.says
    assert odf("list").code == odf("tail", NAME).code == 0, "who needs no setting does not read them"


def test_the_version_of_a_workspace(odf: Odf, workspace: Path) -> None:
    for text in (b"99", b"\xff", b""):
        (workspace / ".odf" / "version").write_bytes(text)
        refused = odf("list")
        assert refused.code == 1
        assert "layout version" in refused.says
        assert ("newer release" in refused.says) is (text == b"99")


def test_a_workspace_without_its_version_file_is_a_damaged_one(odf: Odf, workspace: Path) -> None:
    version = workspace / ".odf" / "version"
    version.write_bytes(b"0")
    refused = odf("list").says
    assert "newer" not in refused
    assert f"echo 1 > {version}." in refused
    version.unlink()
    for command in (["list"], ["init", "."], ["add", "x.yaml"]):
        refused = odf(*command).says
        assert f"The workspace in {workspace} is damaged: {version} is missing (E220)" in refused
        assert f"echo 1 > {version}." in refused
    version.write_text("1\n")
    assert odf("list").code == 0


# --- Without permission ----------------------------------------------------------------------------------------------

AS_NOBODY = """
import os, sys
from odfpy.cli.app import run

commands = sys.stdin.read().splitlines()
os.chdir(sys.argv[1])  # where everything is imported that somebody else may not be allowed to read
for command in commands:
    run(command.split())
os.chdir(sys.argv[2])
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
sys.stdout.flush()
print("---", file=sys.stderr)
for command in commands:
    print(command, file=sys.stderr, flush=True)
    print(run(command.split()), file=sys.stderr, flush=True)
"""

REFUSED = {
    f"ingest {NAME} input.ndjson": "cannot be locked",
    f"pull {NAME}": "cannot be locked",
    f"rename {NAME} x": "cannot be locked",
    f"delete {NAME} --yes --force": "cannot be locked",
    "config set fetch.timeout 3": "Cannot write",
    "repo add mirror /srv/mirror": "Cannot write",
    "new com.example.new": "Cannot write com.example.new.yaml",
    "init below": "Permission denied",
    "add new.yaml": "cannot be locked",
    f"push {NAME} --to ./pushed": "Permission denied",
}


def test_who_may_only_read_can_read_and_is_told_of_the_rest(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    assert odf("new", "com.example.other", "-f", "new.yaml").code == 0
    (workspace / "input.ndjson").write_text('{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n')
    shutil.copytree(workspace, tmp_path / "other")
    for folder in (*workspace.parents, workspace):
        if os.access(folder, os.W_OK):
            folder.chmod(folder.stat().st_mode | 0o055)
    for path in workspace.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    workspace.chmod(0o555)
    writable = tmp_path / "writable"
    writable.mkdir()
    writable.chmod(0o777)
    talking = [f"push {NAME} --to {writable}/mine", "gc --dry-run"]
    reading = ["list", f"tail {NAME}", f"show {NAME}", f"log {NAME}", f"verify {NAME} --integrity", "config list"]
    before = {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()}
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(tmp_path / "other"), str(workspace)],
        input="\n".join([*reading, *talking, *REFUSED]),
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "XDG_CONFIG_HOME": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stderr.partition("---\n")[2]
    for command in reading:
        assert f"{command}\n0\n" in told, told
    for command in talking:
        assert told.partition(f"{command}\n")[2].partition("\n0\n")[1], told
    assert "note: the repository could not be remembered for the next time: Cannot write" in told
    for command, words in REFUSED.items():
        message = told.partition(f"{command}\n")[2].partition("\n1\n")[0]
        assert message.startswith("error: "), told
        assert words in message
        assert "internal error" not in message
    assert {path: path.read_bytes() for path in workspace.rglob("*") if path.is_file()} == before


def test_a_file_where_a_folder_must_be(odf: Odf, workspace: Path) -> None:
    (workspace / "input.ndjson").write_text("")
    shutil.rmtree(workspace / ".odf" / "run")
    (workspace / ".odf" / "run").write_text("")
    for command in (
        ["ingest", NAME, "input.ndjson"],
        ["pull", NAME],
        ["rename", NAME, "x"],
        ["delete", NAME, "-y", "--force"],
    ):
        refused = odf(*command)
        assert refused.code == 1
        assert str(workspace / ".odf" / "run") in refused.says
    (workspace / "pushed").write_text("")
    assert "pushed" in odf("push", NAME, "--to", "./pushed").says
    assert odf("list").code == odf("tail", NAME).code == 0
    assert odf("init", str(workspace / "pushed")).code == 1
    assert odf("pull", str(KAMU / "cities")).code == 1


def longer(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


@pytest.mark.parametrize(
    ("damage", "says"),
    [(flip, "Damaged data file: its bytes"), (longer, "Damaged data file"), (Path.unlink, "Missing data file")],
)
@pytest.mark.parametrize("to_node", [False, True])
def test_a_push_says_what_is_damaged_here(
    damage: Callable[[Path], object],
    says: str,
    *,
    to_node: bool,
    odf: Odf,
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (file, *_) = slices(dataset_folder(workspace, NAME))
    damage(file)
    with ExitStack() as stack:
        place = str(tmp_path / "mirror")
        if to_node:
            there = Workspace.init(tmp_path / "there")
            monkeypatch.setenv("ODF_TOKEN", Tokens(there.odf).new("writer", Scope.WRITE))
            place = f"odf+{stack.enter_context(serving(there)).url}"
        refused = odf("push", NAME, "--to", f"{place}/")
    assert refused.says.startswith(f"error: {NAME}: {says}")
    assert str(file) in refused.says
    assert f"hint: `odf verify {NAME} --repair` fetches it" in refused.says
