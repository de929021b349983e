"""Named repositories, aliases of datasets, and what a remote reference stands for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.multihash import Multihash
from odfpy.errors import (
    AlreadyExists,
    InvalidValue,
    MalformedManifest,
    OdfError,
    RepositoryNotFound,
    TransferError,
    UsageError,
)
from odfpy.repository.registry import Aliases, RepositoryRegistry, resolve_remote
from odfpy.repository.seen_heads import SeenHeads


@pytest.fixture
def registry(tmp_path: Path) -> RepositoryRegistry:
    return RepositoryRegistry(tmp_path / "repos")


@pytest.fixture
def aliases(tmp_path: Path) -> Aliases:
    return Aliases(tmp_path / "info" / "aliases.yaml")


# --- Repositories ---


def test_repositories_are_added_listed_and_deleted(registry: RepositoryRegistry):
    assert registry.list() == ()
    registry.add("zoo", "https://example.org/zoo/")
    registry.add("Acme", "http://example.org/acme")
    assert [(str(r.name), r.url) for r in registry.list()] == [
        ("Acme", "http://example.org/acme"),
        ("zoo", "https://example.org/zoo"),
    ]
    assert registry.delete("ACME").url.endswith("acme")
    assert [str(r.name) for r in registry.list()] == ["zoo"]


def test_path_is_kept_as_an_absolute_url(registry: RepositoryRegistry, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert registry.add("disk", "./shared").url == (tmp_path / "shared").as_uri()


def test_name_is_given_once(registry: RepositoryRegistry):
    registry.add("acme", "http://h/x")
    with pytest.raises(AlreadyExists, match="http://h/x") as caught:
        registry.add("Acme", "http://h/y")
    assert "odf repo delete acme" in (caught.value.hint or "")
    assert registry.get("acme").url == "http://h/x"


@pytest.mark.parametrize("url", ["http://u:s3cret@h/x", "odf+https://s3cret@h/x", "HTTPS://u:s3cret@h"])
def test_a_password_is_not_remembered_with_a_repository(registry: RepositoryRegistry, url: str):
    with pytest.raises(InvalidValue, match="must not contain user and password") as caught:
        registry.add("acme", url)
    assert "s3cret" not in f"{caught.value.message}{caught.value.hint}"
    assert registry.list() == ()


def test_a_password_that_an_earlier_release_remembered_is_good_and_not_shown(
    registry: RepositoryRegistry, aliases: Aliases, tmp_path: Path
):
    url = "http://u:s3cret@h/x"
    for path, text in (
        ("repos/acme.yaml", f"kind: Repository\nversion: 1\ncontent:\n  name: acme\n  url: {url}\n"),
        ("info/aliases.yaml", f"kind: DatasetAliases\nversion: 1\ncontent:\n  pull: ['{url}']\n"),
    ):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    assert (registry.get("acme").url, registry.get("acme").public_url) == (url, "http://h/x")
    assert resolve_remote("acme/a", registry) == f"{url}/a"
    assert (aliases.list("pull"), aliases.shown("pull")) == ((url,), ("http://h/x",))
    aliases.add("pull", url)
    assert aliases.list("pull") == ("http://h/x",)


def test_misspelt_name_gets_a_suggestion(registry: RepositoryRegistry):
    registry.add("mirror", "http://h/x")
    for attempt in (registry.get, registry.delete):
        with pytest.raises(RepositoryNotFound, match="'miror'") as caught:
            attempt("miror")
        assert caught.value.hint == "Did you mean mirror?"
    with pytest.raises(RepositoryNotFound) as caught:
        registry.get("elsewhere")
    assert "odf repo add elsewhere URL" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc", "a b", "-x", ".hidden", "x\0", "a" * 300])
def test_path_tricks_in_names_are_refused(registry: RepositoryRegistry, tmp_path: Path, name: str):
    for attempt in (
        lambda: registry.add(name, "http://h/x"),
        lambda: registry.get(name),
        lambda: registry.delete(name),
    ):
        with pytest.raises(InvalidValue):
            attempt()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["", "htp://h/x", "http://h/x?y"])
def test_repository_at_no_place_is_refused(registry: RepositoryRegistry, url: str):
    with pytest.raises(InvalidValue):
        registry.add("acme", url)
    assert registry.list() == ()


def test_files_are_small_manifests_for_their_owner_only(registry: RepositoryRegistry, tmp_path: Path):
    registry.add("Acme", "http://h/x")
    (path,) = (tmp_path / "repos").iterdir()
    assert (path.name, path.stat().st_mode & 0o777) == ("acme.yaml", 0o600)
    assert path.read_text() == "kind: Repository\nversion: 1\ncontent:\n  name: Acme\n  url: http://h/x\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "one document expected"),
        ("[", "not YAML"),
        ("a: b", "expected `kind`"),
        ("kind: Dataset\nversion: 1\ncontent: {}", "line 1: kind: expected Repository"),
        ("kind: Repository\nversion: 2\ncontent: {}", "line 2: version: expected 1"),
        ("kind: Repository\nversion: 1\ncontent:\n  name: a\n  link: b", "line 5: content.link: unknown key"),
        ("kind: Repository\nversion: 1\ncontent:\n  name: ../b\n  url: b", "Not a repository name"),
        ("kind: Repository\nversion: 1\ncontent:\n  name: a\n  url: [b]", "line 5: content.url: expected text"),
    ],
)
def test_damaged_file_is_an_error_that_names_it(registry: RepositoryRegistry, tmp_path: Path, text: str, message: str):
    path = tmp_path / "repos" / "a.yaml"
    path.parent.mkdir()
    path.write_text(text)
    for attempt in (lambda: registry.get("a"), registry.list):
        with pytest.raises(MalformedManifest) as caught:
            attempt()
        assert caught.value.message.startswith(str(path))
        assert message in caught.value.message
        assert caught.value.hint


def test_unreadable_file_is_an_error_that_names_it(registry: RepositoryRegistry, tmp_path: Path):
    (tmp_path / "repos" / "a.yaml").mkdir(parents=True)
    with pytest.raises(OdfError, match=r"Cannot read .*a\.yaml"):
        registry.get("a")


# --- Aliases ---


def test_latest_alias_comes_first(aliases: Aliases, tmp_path: Path):
    assert aliases.list("pull") == ()
    aliases.add("pull", "acme/a")
    aliases.add("push", "acme/team/b")
    aliases.add("pull", "https://h/x/")
    aliases.add("pull", "acme/a")
    again = Aliases(tmp_path / "info" / "aliases.yaml")
    assert again.list("pull") == ("acme/a", "https://h/x")
    assert again.list("push") == ("acme/team/b",)


def test_alias_of_a_path_means_the_same_everywhere(aliases: Aliases, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert aliases.add("push", "./x") == (tmp_path / "x").as_uri()
    aliases.remove("push", str(tmp_path / "x"))
    assert aliases.list("push") == ()


def test_a_password_is_not_remembered_with_an_alias(aliases: Aliases, tmp_path: Path):
    assert aliases.add("pull", "http://u:s3cret@h/x") == "http://h/x"
    assert "s3cret" not in (tmp_path / "info" / "aliases.yaml").read_text()
    aliases.remove("pull", "http://u:s3cret@h/x")
    assert aliases.list("pull") == ()


def test_unknown_alias_cannot_be_removed(aliases: Aliases):
    aliases.add("pull", "acme/rates")
    with pytest.raises(UsageError) as caught:
        aliases.remove("pull", "acme/rate")
    assert caught.value.hint == "Did you mean acme/rates?"


@pytest.mark.parametrize("text", ["", "acme", "acme/../x", "../", "acme/", "/", "acme//x", "htp://x/y"])
def test_alias_is_a_place(aliases: Aliases, text: str):
    if text in ("../", "/"):
        aliases.add("pull", text)  # unusual, but folders
        return
    with pytest.raises(InvalidValue):
        aliases.add("pull", text)


def test_damaged_aliases_are_an_error_that_names_the_file(aliases: Aliases, tmp_path: Path):
    path = tmp_path / "info" / "aliases.yaml"
    path.parent.mkdir()
    path.write_text("kind: DatasetAliases\nversion: 1\ncontent:\n  pull: acme/a\n")
    with pytest.raises(MalformedManifest, match=rf"{path}, line 4: content.pull: expected a list"):
        aliases.list("pull")


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["r/a", "r/b", "http://h/c"]))))
def test_aliases_are_a_list_of_the_latest(tmp_path_factory, moves: list[tuple[bool, str]]):
    aliases = Aliases(tmp_path_factory.mktemp("aliases") / "aliases.yaml")
    model: list[str] = []
    for add, remote in moves:
        if add:
            aliases.add("push", remote)
            model = [remote, *(item for item in model if item != remote)]
        elif remote in model:
            aliases.remove("push", remote)
            model.remove(remote)
        assert list(aliases.list("push")) == model


# --- What a remote reference stands for ---


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("acme/com.example.rates", "https://h/acme/com.example.rates"),
        ("ACME/team/rates", "https://h/acme/team/rates"),
        ("http://h/x/", "http://h/x"),
        ("/tmp/x", "file:///tmp/x"),
        ("file:///tmp/x", "file:///tmp/x"),
    ],
)
def test_reference_becomes_a_url(registry: RepositoryRegistry, text: str, url: str):
    registry.add("acme", "https://h/acme/")
    assert resolve_remote(text, registry) == url


@pytest.mark.parametrize(
    "text", ["acme/..", "acme/../x", "acme/a/../x", "acme//etc", "acme/%2e%2e", "acme/a b", "acme"]
)
def test_path_tricks_in_references_are_refused(registry: RepositoryRegistry, text: str):
    registry.add("acme", "https://h/acme")
    with pytest.raises(InvalidValue):
        resolve_remote(text, registry)


def test_reference_by_id_needs_a_later_release(registry: RepositoryRegistry):
    registry.add("acme", "https://h/acme")
    for text in (f"acme/did:odf:fed01{'00' * 32}", f"did:odf:fed01{'00' * 32}"):
        with pytest.raises(TransferError, match="by name, not by id"):
            resolve_remote(text, registry)


def test_unknown_repository_that_is_a_folder_gets_a_hint(registry: RepositoryRegistry, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shared" / "rates").mkdir(parents=True)
    with pytest.raises(RepositoryNotFound) as caught:
        resolve_remote("shared/rates", registry)
    assert "./shared/rates" in (caught.value.hint or "")
    with pytest.raises(RepositoryNotFound) as caught:
        resolve_remote("other/rates", registry)
    assert "odf repo add other" in (caught.value.hint or "")


def test_places_that_are_remembered_at_once_are_all_remembered(tmp_path: Path):
    """Pushes to several places may end at the same moment."""
    places, seen = tmp_path / "info" / "aliases.yaml", tmp_path / "info" / "remotes.yaml"
    urls = [f"https://example.com/{number}" for number in range(20)]
    barrier, head = Barrier(len(urls)), Multihash.of(b"head")

    def remember(url: str) -> None:
        barrier.wait(60)
        Aliases(places).add("push", url)
        SeenHeads(seen).remember(url, head)

    with ThreadPoolExecutor(len(urls)) as pool:
        list(pool.map(remember, urls))
    assert set(Aliases(places).list("push")) == set(urls)
    assert {SeenHeads(seen).get(url) for url in urls} == {head}
