"""Commits are signed: by whom, where it shows, and what happens where that is impossible."""

from __future__ import annotations

import json
import shutil
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.small_datasets import NOON, append, seed
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import HEAD_PATH, SignatureReport, path_of, read_head_signatures, read_signatures
from odfpy.chain.state import ChainState
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.keys import UnusableKey, UserKeys, required_signers
from odfpy.coordinator.storage.results import AddOutcome
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.identity import ActorId, KeyPair
from odfpy.errors import MalformedManifest, OdfError
from odfpy.settings.sections import SETTINGS


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The configuration folder of a new user."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "odf"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace, and the configuration of the new user who has made it."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        feed(workspace_with(folder / "workspace", root()), "root", "1 a", "2 b")
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return Workspace.open(tmp_path / "workspace")


def names(workspace: Workspace, ref: str = "root") -> set[tuple[str, ...]]:
    """What the signers of each block are called."""
    signers = workspace.datasets.signers(ref)
    return {tuple(signer.name for signer in signers.get(block).signers) for block in workspace.datasets.log(ref)}


@pytest.fixture
def derived(workspace: Workspace) -> Workspace:
    workspace.add(load_snapshots(derivative(), "manifest"))
    list(workspace.pull(["derived"]))
    return workspace


def test_every_block_is_signed_by_the_user_and_the_owner(derived: Workspace):
    workspace = derived
    for ref in ("root", "derived"):
        assert names(workspace, ref) == {("me", "owner")}
        dataset = workspace.storage.get(ref)
        head = dataset.chain.block(dataset.chain.head())
        assert read_head_signatures(dataset.layout.side, dataset.handle.id, head)


def test_what_is_added_to_a_manifest_later_is_signed(workspace: Workspace):
    changed = replace(
        workspace.datasets.snapshot("root"),
        metadata=(*workspace.datasets.snapshot("root").metadata, SetInfo(description="x")),
    )
    assert workspace.add([changed], replace=True)[0].outcome is AddOutcome.UPDATED
    assert names(workspace) == {("me", "owner")}


def test_a_copy_is_signed_by_its_owner_no_more_once_somebody_else_goes_on(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    list(workspace.push(["root"], to=str(tmp_path / "shared" / "root")))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    other = Workspace.init(tmp_path / "elsewhere")
    (pulled,) = other.pull([str(tmp_path / "shared" / "root")])
    assert pulled.signatures == SignatureReport(4, 0, pulled.signatures.signers if pulled.signatures else ())
    feed(other, "root", "3 c")
    signers = other.datasets.signers("root")
    newest, before = [signers.get(block) for block in list(other.datasets.log("root"))[:2]]
    assert [signer.name for signer in newest.signers] == ["me"]
    assert [signer.name[:12] for signer in before.signers] == ["did:key:z6Mk", "owner"]


def test_blocks_are_the_same_with_and_without_signatures():
    plain, signed = DatasetLayout.in_memory(), DatasetLayout.in_memory()
    shown = []
    append(plain, [seed()])
    chain = signed.witnessed(shown.append)
    chain.commit(chain.prepare(ChainState(), [seed()], NOON))
    assert signed.chain.head() == plain.chain.head()
    assert [block.hash for new in shown for block in new.blocks] == [plain.chain.head()]


def test_the_key_is_made_once_readable_by_its_owner_only(config: Path):
    pair = UserKeys().own()
    file = config / "keys" / "id_ed25519"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert UserKeys().own().actor == pair.actor


def test_whoever_makes_a_key_at_the_same_time_has_the_same():
    barrier = threading.Barrier(8)

    def own(_: int) -> ActorId:
        barrier.wait(60)
        return UserKeys().own().actor

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(own, range(8))) == {UserKeys().own().actor}


def test_keys_that_are_trusted_at_once_are_all_trusted(config: Path):
    names = [f"somebody-{number}" for number in range(12)]
    barrier = threading.Barrier(len(names))

    def trust(name: str) -> None:
        barrier.wait(60)
        UserKeys().trust(name, KeyPair.generate().actor)

    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(trust, names))
    assert {item.name for item in UserKeys().trusted} == set(names)


def test_settings_that_are_made_at_once_are_all_made(workspace: Workspace):
    settings = {"engine.memory": "2g", "ingest.memory": "1g", "fetch.maxSize": "9", "watermark.lag": "1d"}
    wanted = {key: text for key, text in settings.items() if key in SETTINGS}
    barrier = threading.Barrier(len(wanted))

    def make(key: str) -> None:
        barrier.wait(60)
        Config.load(workspace.root).set(key, wanted[key])

    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(make, wanted))
    found = (workspace.odf / "config.yaml").read_text()
    assert len(wanted) > 2
    assert [key for key in wanted if key.partition(".")[2] not in found] == []


@pytest.mark.parametrize("trouble", ["a file in the way", "open to others", "damaged"])
def test_a_commit_without_a_key_goes_on_and_says_so(trouble: str, workspace: Workspace, config: Path):
    file = config / "keys" / "id_ed25519"
    match trouble:
        case "a file in the way":
            file.unlink()
            file.parent.rmdir()
            file.parent.write_text("not a folder")
        case "open to others":
            file.chmod(0o644)
        case "damaged":
            file.write_text("x")
    again = Workspace.open(workspace.root)
    with pytest.raises(UnusableKey):
        UserKeys().own()
    result = feed(again, "root", "3 c")
    assert result.num_blocks == 1
    assert [note.startswith("not signed by you: ") for note in result.notes] == [True]
    assert [signer.name for signer in again.datasets.signers("root").get(next(again.datasets.log("root"))).signers] == [
        "owner"
    ]


def test_a_damaged_key_of_the_dataset_leaves_that_of_the_user(workspace: Workspace):
    (key,) = (workspace.odf / "keys").iterdir()
    key.write_text("x")
    result = feed(Workspace.open(workspace.root), "root", "3 c")
    assert [note.partition(":")[0] for note in result.notes] == ["not signed by the owner"]
    assert [
        signer.name for signer in workspace.datasets.signers("root").get(next(workspace.datasets.log("root"))).signers
    ] == ["me"]


def test_a_place_that_takes_no_signatures_keeps_no_commit_from_being_made(workspace: Workspace):
    folder = workspace.storage.get("root").folder
    for path in (folder / "info" / "signatures").iterdir():
        path.unlink()
    (folder / "info" / "signatures").rmdir()
    (folder / "info" / "signatures").write_text("in the way")
    result = feed(Workspace.open(workspace.root), "root", "3 c")
    assert result.num_blocks == 1
    assert result.notes[0].startswith("not signed: Cannot write")


def test_nothing_is_signed_where_that_is_not_wanted(workspace: Workspace):
    workspace.config.set("signatures.sign", "false")
    result = feed(Workspace.open(workspace.root), "root", "3 c")
    assert result.notes == ()
    assert workspace.datasets.signers("root").get(next(workspace.datasets.log("root"))).signers == ()


# --- Verification ----------------------------------------------------------------------------------------------------


def verified(workspace: Workspace, ref: str = "root"):
    (report,) = workspace.verify([ref], integrity_only=True)
    return report


def test_verification_tells_signed_and_unsigned_blocks(workspace: Workspace):
    report = verified(workspace)
    assert report.ok
    assert report.signatures
    assert (report.signatures.signed, report.signatures.unsigned, len(report.signatures.signers)) == (4, 0, 2)
    block = list(workspace.datasets.log("root"))[1]
    (workspace.storage.get("root").folder / path_of(block.hash)).unlink()
    report = verified(workspace)
    assert report.ok
    assert report.signatures
    assert (report.signatures.signed, report.signatures.unsigned) == (3, 1)


@pytest.mark.parametrize("where", ["block", "head"])
@pytest.mark.parametrize(("change", "code"), [(("did:key:z6Mk", "did:key:z6MK"), "E650"), (("{", "["), "E651")])
def test_verification_finds_what_is_forged_and_what_is_damaged(
    where: str, change: tuple[str, str], code: str, workspace: Workspace
):
    """A finding is one of the signature, and keeps nothing else from being checked."""
    block = next(workspace.datasets.log("root"))
    path = workspace.storage.get("root").folder / (path_of(block.hash) if where == "block" else HEAD_PATH)
    path.write_text(path.read_text().replace(*change))
    (finding,) = verified(workspace).findings
    assert (finding.check, finding.code, finding.block, finding.file) == ("signature", code, block.hash, str(path))


def test_a_derivative_is_replayed_whatever_its_signatures_say(derived: Workspace):
    (derived.storage.get("derived").folder / HEAD_PATH).write_text("{")
    (report,) = derived.verify(["derived"])
    assert (report.ok, report.transforms_replayed) == (False, 1)


def test_signatures_of_an_older_head_are_nothing(workspace: Workspace):
    dataset = workspace.storage.get("root")
    path = dataset.folder / HEAD_PATH
    before = path.read_bytes()
    feed(workspace, "root", "3 c")
    path.write_bytes(before)
    assert verified(workspace).ok


# --- Requirements ----------------------------------------------------------------------------------------------------


def test_names_keys_and_the_owner_can_be_required(config: Path):
    keys = UserKeys()
    alice, bob = KeyPair.generate().actor, KeyPair.generate().actor
    keys.trust("alice", alice)
    required = required_signers(f" Alice, {bob} ,OWNER", keys)
    assert (required.keys, required.owner) == (frozenset({alice, bob}), True)
    assert not required_signers(None, keys).names
    own = keys.own().actor
    assert required_signers("alice", UserKeys()) == type(required)("alice", frozenset({alice, own}), owner=False)


def test_what_is_required_holds_for_a_copy_that_an_earlier_try_has_left(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The first try ends between the move of the head and the appearance of the dataset."""
    shared = str(tmp_path / "shared" / "root")
    list(workspace.push(["root"], to=shared))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    other = Workspace.init(tmp_path / "elsewhere")

    def cut_off(*_: object) -> None:
        raise OdfError("cut off")

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "create", cut_off)
        (first,) = other.pull([shared])
    assert first.error is not None
    other.config.set("signatures.require", str(KeyPair.generate().actor))
    (second,) = Workspace.open(other.root).pull([shared])
    assert second.error is not None
    assert (second.error.code, other.datasets.all()) == ("E654", [])
    other.config.set("signatures.require", "owner")
    (third,) = Workspace.open(other.root).pull([shared])
    assert third.error is None
    assert verified(Workspace.open(other.root)).ok


def test_what_is_required_holds_for_copies_when_they_are_pulled_and_verified(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    owner = ActorId.owner_of(workspace.datasets.handle("root").id)
    shared = tmp_path / "shared" / "root"
    list(workspace.push(["root"], to=str(shared)))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other"))
    other = Workspace.init(tmp_path / "elsewhere")
    stranger = str(KeyPair.generate().actor)
    other.config.set("signatures.require", stranger)
    (refused,) = Workspace.open(other.root).pull([str(shared)])
    assert refused.error is not None
    assert (refused.error.code, other.datasets.all()) == ("E654", [])
    other.config.set("signatures.require", "owner")
    (pulled,) = Workspace.open(other.root).pull([str(shared)])
    assert pulled.error is None
    assert verified(Workspace.open(other.root)).ok
    other.config.set("signatures.require", stranger)
    assert [finding.code for finding in verified(Workspace.open(other.root)).findings] == ["E654"]
    other.config.set("signatures.require", str(owner))
    assert verified(Workspace.open(other.root)).ok
    feed(Workspace.open(other.root), "root", "3 c")
    assert verified(Workspace.open(other.root)).ok, "one's own signature is always good"


def test_a_damaged_list_of_trusted_keys_is_told(config: Path):
    keys = UserKeys()
    keys.trust("alice", KeyPair.generate().actor)
    file = config / "trusted-keys.yaml"
    file.write_text(file.read_text().replace("z6Mk", "zzzz"))
    with pytest.raises(MalformedManifest, match="trusted-keys"):
        _ = UserKeys().trusted


def test_signatures_are_in_json_that_others_can_read(workspace: Workspace):
    dataset = workspace.storage.get("root")
    block = next(workspace.datasets.log("root"))
    tree = json.loads((dataset.folder / path_of(block.hash)).read_text())
    assert (tree["kind"], tree["version"]) == ("BlockSignatures", 1)
    assert tree["content"]["blockHash"] == str(block.hash)
    assert read_signatures(dataset.layout.side, dataset.handle.id, block)
