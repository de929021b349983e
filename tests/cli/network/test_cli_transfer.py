"""`odf push` and `odf pull` between a workspace and other places, as a person uses them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.servers.static_server import static_server

from odfpy.repository.registry import Aliases

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.rates"


def test_a_tag_goes_along_from_the_datasets_that_have_it(odf: Odf, workspace: Path) -> None:
    assert odf("tag", NAME, "v1", "1").code == 0
    pushed = odf("push", "com.example.%", "--tag", "v1", "--to", "./mirror/")
    assert pushed.code == 0
    assert f"{NAME} tag v1: updated" in pushed.err
    assert "com.example.cities tag v1: skipped" in pushed.err
    assert "note: it has no tag v1" in pushed.err
    (told,) = (
        one for one in odf("push", "com.example.%", "--tag", "v1", "-o", "json").json if "cities t" in one["name"]
    )
    assert (told["outcome"], told["error"]) == ("skipped", None)

    nowhere = odf("push", "com.example.%", "--tag", "v2", "--to", "./other/")
    assert (nowhere.code, (workspace / "other").exists()) == (1, False)
    assert "datasets has a tag v2 (E655)" in nowhere.says
    assert odf("push", NAME, "--tag", "v2").code == 1


def test_a_tag_comes_along_to_the_copies_that_can_have_it(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert odf("tag", NAME, "v1", "1").code == 0
    assert odf("push", "com.example.%", "--tag", "v1", "--to", f"{tmp_path}/mirror/").code == 0
    assert odf("init", str(tmp_path / "copies")).code == 0
    monkeypatch.chdir(tmp_path / "copies")
    for name in (NAME, "com.example.cities"):
        assert odf("pull", f"{tmp_path}/mirror/{name}").code == 0
    pulled = odf("pull", "--all", "--tag", "v1")
    assert pulled.code == 0
    assert f"{NAME} tag v1: updated" in pulled.err
    assert "com.example.cities tag v1: skipped" in pulled.err
    nowhere = odf("pull", "--all", "--tag", "v2")
    assert nowhere.code == 1
    assert "None of the 2 datasets is a copy of one with a tag v2" in nowhere.err


def test_nothing_to_do_is_said(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert odf("init", str(tmp_path / "empty")).code == 0
    monkeypatch.chdir(tmp_path / "empty")
    for command in (["pull", "--all"], ["push", "--all", "--to", "./x/"], ["verify", "--all"]):
        done = odf(*command)
        assert (done.code, done.err) == (0, "Nothing to do: no datasets in this workspace\n")
        assert odf(*command, "-o", "json").json == []


def test_a_pattern_over_a_repository(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = tmp_path / "mirror"
    assert odf("push", "com.example.%", "--to", f"{mirror}/").code == 0
    there = sorted(path.name for path in mirror.iterdir() if path.is_dir())
    assert len(there) > 1
    assert odf("init", str(tmp_path / "copies")).code == 0
    monkeypatch.chdir(tmp_path / "copies")
    refused = odf("pull", "mirror/com.%")
    assert refused.code == 1
    assert "No dataset matches the pattern 'mirror/com.%', and no repository is called 'mirror'" in refused.says
    assert odf("repo", "add", "mirror", str(mirror)).code == 0
    planned = odf("pull", "mirror/com.%", "--dry-run")
    assert all(name in planned.out + planned.err for name in there)
    assert odf("pull", "mirror/com.%").code == 0
    assert sorted(one["name"] for one in odf("list", "-o", "json").json) == there
    again = odf("pull", f"{mirror}/com.example.%").err.splitlines()
    assert [line.count(": up to date") for line in again] == [1] * len(there) + [0]
    assert again[-1] == f"{len(there)} up to date"
    assert odf("pull", f"file://{mirror}/%rates").err.count("up to date") == 1
    assert "No dataset of mirror fits the pattern 'org.%'" in odf("pull", "mirror/org.%").says
    assert odf("pull", "mirror/com.%", "--as", "x").code == 2


def test_a_place_has_one_name(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    (workspace / "below").mkdir()
    for to in ("./pushed", "./below/../pushed", f"file://{workspace}/below/../pushed"):
        assert odf("push", NAME, "--to", to).code == 0
    texts = [path.read_text() for path in workspace.glob(".odf/datasets/*/info/aliases.yaml")]
    (text,) = (text for text in texts if "pushed" in text)
    assert (text.count("pushed"), ".." in text) == (1, False)


@pytest.mark.parametrize("place", ["s3://", "https://", "odf+http://"])
def test_a_scheme_alone_is_no_place(place: str, odf: Odf, workspace: Path) -> None:
    refused = odf("push", NAME, "--to", place)
    assert f"Not a repository, path or URL: {place!r}" in refused.says
    assert "s3://bucket/folder" in refused.err


def test_a_url_of_a_node_without_a_name_is_told(odf: Odf, workspace: Path) -> None:
    refused = odf("push", NAME, "--to", "odf+http://127.0.0.1:9")
    assert "hint: End it with a slash, or add the name: --to odf+http://127.0.0.1:9/com.example.rates" in refused.says
    assert "odf+http://127.0.0.1:9 is the URL of a node, and names no dataset" in refused.says
    assert "names no dataset" not in odf("push", NAME, "--to", "odf+http://127.0.0.1:9/").says


@pytest.mark.parametrize("place", ["{0}", "{0}/", "{0}/other", "named"])
def test_no_dataset_comes_to_be_within_another(place: str, odf: Odf, workspace: Path, tmp_path: Path) -> None:
    outer = tmp_path / "mirror" / NAME
    assert odf("push", NAME, "--to", str(outer)).code == 0
    assert odf("repo", "add", "named", str(outer)).code == 0
    before = sorted(tmp_path.joinpath("mirror").rglob("*"))
    several = ["com.example.stock"] if place == "{0}" else []
    refused = odf("push", "com.example.cities", *several, "--to", place.format(outer))
    assert refused.code in (1, 2)
    assert f"file://{outer} is a dataset, not a repository (E100)" in refused.err
    assert f"--to file://{tmp_path}/mirror/" in refused.err
    assert sorted(tmp_path.joinpath("mirror").rglob("*")) == before
    assert odf("push", "com.example.cities", *several, "--to", f"{tmp_path}/mirror/").code == 0


def test_a_password_in_a_url_is_used_and_neither_shown_nor_kept(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert odf("push", "com.example.rates", "com.example.upper", "--to", f"{tmp_path}/mirror/").code == 0
    assert odf("init", str(tmp_path / "copies")).code == 0
    monkeypatch.chdir(tmp_path / "copies")
    with static_server(tmp_path / "mirror") as server:
        url = server.url.replace("//", "//bob:s3cret@")
        pulled = odf("pull", f"{url}/com.example.upper", "--recursive")
        assert (pulled.code, "user and password in the URL are not stored" in pulled.err) == (0, True)
        assert all("Authorization" in asked for asked in server.headers)
        told = [pulled, odf("pull", f"{url}/{NAME}"), odf("pull", f"{url}/{NAME}", "-o", "json")]
        told += [odf("pull", f"{url}/{NAME}", "--dry-run"), odf("pull", f"{url}/com.%"), odf("search", "--repo", url)]
        told += [odf("show", NAME), odf("status", "--remote"), odf("inspect", "source", NAME)]
        told += [odf("reset", NAME, "1", "--yes"), odf("verify", NAME, "--repair"), odf("log", NAME)]
        assert [one.code for one in told if one.code not in (0, 1)] == []
        refused = [odf("repo", "add", "mirror", url), odf("gc", "--repo", url), odf("push", NAME, "--to", f"{url}/x")]
        refused += [odf("pull", f"{url}/{wrong}") for wrong in ("nothing", "No%20Name", "org.%", f"{NAME}?x")]
        refused += [odf("pull", text) for text in (f"{url}:1/x", "ftp://bob:s3cret@host/x", "s3://bob:s3/cret@host/x")]
        assert [one.err for one in refused if one.code == 0] == []
    refused += [odf("pull", f"{url}/{NAME}"), odf("clone", f"{url}/{NAME}", "other")]  # nobody listens any more
    for one in told + refused:
        assert "s3cret" not in one.out + one.err
        assert "s3/cret" not in one.out + one.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path for path in files if b"s3cret" in path.read_bytes()] == []


def test_a_dataset_that_was_made_here_stays_at_home(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    name = "com.example.upper"
    assert odf("repo", "add", "mirror", str(tmp_path / "mirror")).code == 0
    assert odf("tag", name, "v1").code == 0
    assert odf("push", "com.example.%", "--to", "mirror", "--tag", "v1").code == 0
    for place in (f"mirror/{name}", "mirror/%upper", f"{tmp_path}/mirror/{name}"):
        pulled = odf("pull", place)
        assert (pulled.code, f"it was created here: `odf pull {name}` does not fetch from" in pulled.err) == (0, True)
    assert "pulledFrom" not in odf("show", name, "-o", "json").json
    tagged = odf("pull", f"mirror/{name}", "--tag", "v1")
    assert (tagged.code, f"{name} tag v1: up to date" in tagged.err) == (0, True)


def test_a_place_that_was_remembered_can_be_forgotten(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    assert odf("repo", "add", "mirror", str(tmp_path / "mirror")).code == 0
    place = f"mirror/{NAME}"
    assert odf("push", NAME, "--to", "mirror").code == 0
    Aliases(dataset_folder(workspace, NAME) / "info" / "aliases.yaml").add("pull", place)  # as earlier releases did
    told = odf("pull", NAME).err
    assert f"`odf repo forget {NAME} {place} --pull` restores its own source or query" in told
    assert odf("repo", "forget", NAME, place, "--pull").err == f"Forgot that {NAME} is pulled from {place}\n"
    shown = odf("show", NAME, "-o", "json").json
    assert ("pulledFrom" in shown, shown["pushedTo"]) == (False, [place])
    assert "it was created here" not in odf("pull", NAME).err
    assert f"No pull alias {place}" in odf("repo", "forget", NAME, place, "--pull").says
    assert odf("repo", "forget", NAME, place).code == 0
    assert "pushedTo" not in odf("show", NAME, "-o", "json").json
    assert odf("repo", "forget", NAME, place).code == 2


def ingest(odf: Odf, *ids: int) -> None:
    """Take in rows of the dataset that is transferred."""
    rows = "".join(f'{{"event_time": "2024-05-01T00:00:00Z", "id": {one}, "name": "new"}}\n' for one in ids)
    ingested = odf("ingest", NAME, "--stdin", "--input-format", "ndjson", stdin=rows.encode())
    assert ingested.code == 0, ingested.err


def head(odf: Odf) -> str:
    """The last block of that dataset here."""
    return str(odf("show", NAME, "-o", "json").json["head"])


@pytest.fixture
def copy(odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a workspace that has pushed a dataset to `mirror` beside it; it is the current folder."""
    assert odf("push", NAME, "--to", f"{tmp_path}/mirror/").code == 0
    other = tmp_path / "copy"
    shutil.copytree(workspace, other)
    monkeypatch.chdir(other)
    return other


def pushed_ahead(odf: Odf, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Push a block of the copy, and go back to the workspace, which lacks it; returns the head in the place."""
    ingest(odf, 10)
    assert odf("push", NAME).code == 0
    there = head(odf)
    monkeypatch.chdir(workspace)
    return there


def test_a_forced_pull_drops_nothing_where_this_side_is_only_ahead(odf: Odf, copy: Path, tmp_path: Path) -> None:
    ingest(odf, 10)
    ahead = head(odf)
    for force in ([], ["--force"]):
        pulled = odf("pull", f"{tmp_path}/mirror/{NAME}", *force)
        assert (pulled.code, head(odf)) == (0, ahead)
        assert f"note: it has 1 block more than {tmp_path}/mirror/{NAME}" in pulled.err.replace("file://", "")


def test_a_forced_pull_says_what_it_has_dropped(
    odf: Odf, workspace: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = pushed_ahead(odf, workspace, monkeypatch)
    ingest(odf, 20)
    ingest(odf, 21, 22)
    here = head(odf)
    assert odf("pull", f"{tmp_path}/mirror/{NAME}").code == 1
    (pulled,) = odf("pull", f"{tmp_path}/mirror/{NAME}", "--force", "-o", "json").json
    assert (pulled["droppedBlocks"], pulled["droppedRecords"], pulled["oldHead"]) == (2, 3, here)
    lost = f"it has lost 2 blocks with 3 records; the head was {here}; `odf reset {NAME} {here}` restores it"
    assert any(note.startswith(lost) for note in pulled["notes"])
    assert head(odf) == there
    assert odf("reset", NAME, here, "--yes").code == 0
    assert head(odf) == here

    pushed = odf("push", NAME, "--force")
    place = f"file://{tmp_path}/mirror/{NAME}"
    assert (pushed.code, f"{place} has lost 1 block with 1 record; the head was {there}" in pushed.err) == (0, True)


def test_a_forced_pull_follows_a_place_that_has_taken_back_what_it_had(
    odf: Odf, workspace: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = head(odf)
    ingest(odf, 10)
    assert odf("push", NAME).code == 0
    monkeypatch.chdir(workspace)
    assert odf("pull", f"{tmp_path}/mirror/{NAME}").code == 0
    monkeypatch.chdir(copy)
    assert odf("reset", NAME, before, "--yes").code == 0
    assert "has lost 1 block with 1 record" in odf("push", NAME, "--force").err
    monkeypatch.chdir(workspace)
    assert "removed (E660)" in odf("pull", f"{tmp_path}/mirror/{NAME}").err
    assert "has lost 1 block with 1 record" in odf("pull", f"{tmp_path}/mirror/{NAME}", "--force").err
    assert head(odf) == before


@pytest.mark.parametrize("has_index", [True, False])
def test_no_dataset_is_put_beside_those_of_a_repository(
    has_index: bool, odf: Odf, workspace: Path, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    assert odf("push", NAME, "--to", f"{mirror}/").code == 0
    if not has_index:
        (mirror / "odf-index.json").unlink()
    before = sorted(mirror.rglob("*"))
    refused = odf("push", "com.example.cities", "--to", str(mirror))
    assert (refused.code, sorted(mirror.rglob("*"))) == (2, before)
    assert f"file://{mirror} is a repository with datasets in it (E100)" in refused.says
    assert (
        f"--to file://{mirror}/com.example.cities, or, with a slash at the end, --to file://{mirror}/\n" in refused.err
    )
    assert odf("push", "com.example.cities", "--to", f"{mirror}/com.example.cities").code == 0


def test_a_repository_that_has_a_dataset_beside_its_own_can_be_mended(
    odf: Odf, workspace: Path, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    assert odf("push", NAME, "--to", str(mirror)).code == 0
    own = [path.name for path in mirror.iterdir()]
    shutil.copytree(mirror, mirror / NAME)  # as earlier releases let it be
    assert odf("push", NAME, "--to", str(mirror)).code == 0
    refused = odf("push", "com.example.cities", "--to", f"{mirror}/")
    assert "not a repository (E100)" in refused.says
    assert f"the folders blocks, checkpoints, data, info and refs in file://{mirror}, and push it" in refused.err
    for name in own:
        shutil.rmtree(mirror / name)
    assert odf("push", "com.example.cities", "--to", f"{mirror}/").code == 0


@pytest.mark.parametrize("command", ["push", "pull"])
def test_the_hint_for_copies_that_have_diverged_keeps_the_blocks_of_both(
    command: str, odf: Odf, workspace: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"{tmp_path}/mirror/{NAME}"
    ingest(odf, 10)
    assert odf("push", NAME).code == 0
    monkeypatch.chdir(workspace)
    ingest(odf, 20)
    refused = odf(command, NAME if command == "push" else place)
    assert "(E601)" in refused.err
    hint = refused.err.partition("hint: ")[2]
    assert hint.index("odf merge") < hint.index("--force replaces"), "what drops blocks comes last"
    assert odf("status", NAME, "--remote", "-o", "json").json[0]["command"] == "odf help E601"
    commands = [words.split() for words in hint.partition(". To drop one side")[0].split("`")[1::2]]
    assert [words[:2] for words in commands] == [["odf", verb] for verb in ("branch", "pull", "merge")]
    for words in commands:
        assert odf(*words[1:]).code == 0
    assert odf("push", NAME).code == 0
    assert {row["id"] for row in odf("tail", NAME, "-n", "2", "-o", "json").json} == {10, 20}


def test_a_place_that_is_merely_ahead_is_pulled_from(
    odf: Odf, workspace: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = pushed_ahead(odf, workspace, monkeypatch)
    assert odf("rename", NAME, "com.example.mine").code == 0
    pull = f"odf pull file://{tmp_path}/mirror/{NAME} --as com.example.mine"
    told = odf("push", "com.example.mine").err
    assert told.index(f"`{pull}` brings them here") < told.index("--force` drops them there")
    assert odf("status", "com.example.mine", "--remote", "-o", "json").json[0]["command"] == pull
    assert odf(*pull.split()[1:]).code == 0
    assert odf("show", "com.example.mine", "-o", "json").json["head"] == there


@pytest.mark.parametrize("collected", [False, True])
def test_a_copy_from_before_a_compaction_is_not_to_be_merged(
    collected: bool, odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same records would be applied twice."""
    monkeypatch.chdir(workspace)
    place = f"{tmp_path}/repo/{NAME}"
    for number in (10, 20):
        ingest(odf, number)
    assert odf("push", NAME, "--to", place).code == 0
    rows = odf("tail", NAME, "-n", "99", "-o", "json").json
    assert odf("compact", NAME, "--yes").code == 0
    if collected:
        assert odf("gc").code == 0
    for command in (("push", NAME), ("pull", place)):
        refused = odf(*command)
        assert "(E601)" in refused.err
        hint = refused.err.partition("hint: ")[2]
        assert "merge" not in hint
        assert "before a reset or `odf compact`" in hint
        assert f"odf push {NAME} --force" in hint
    assert odf("push", NAME, "--force").code == 0
    assert odf("tail", NAME, "-n", "99", "-o", "json").json == rows
