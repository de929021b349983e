"""What is in a repository: folders, buckets, nodes; what the ends of histories say; what has no list."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, append, make_dataset
from support.fixtures import KAMU
from support.servers.azure import azure_containers
from support.servers.serving import put, serving, workspace_at
from support.servers.static_server import send, static_server

from odfpy.chain.events import SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import NotFound
from odfpy.repository.locations.listing import ListedDataset, NotListable, list_datasets
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import transfer


@pytest.fixture(params=["folder", "bucket"])
def repository(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty repository."""
    if request.param == "folder":
        (tmp_path / "a b").mkdir()
        yield (tmp_path / "a b").as_uri()
    else:
        with azure_containers("data") as settings:
            monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
            yield "az://data/some/folder"


def make(url: str, *names: str) -> None:
    for number, name in enumerate(names):
        place = DatasetLayout.local(_folder(url) / name) if url.startswith("file:") else open_dataset(f"{url}/{name}")
        make_dataset(place, "one", "two", number=number)


def _folder(url: str) -> Path:
    from odfpy.repository.locations.open import _local_path

    return _local_path(url)


def names(found: list[ListedDataset]) -> list[str]:
    return [str(item.alias) for item in found]


def test_datasets_are_found_by_name_with_those_of_accounts(repository: str):
    make(repository, "com.example.rates", "alice/com.example.weather", "alice/rates", "Bob")
    every = ["Bob", "com.example.rates", "alice/com.example.weather", "alice/rates"]
    assert sorted(names(list_datasets(repository))) == sorted(every)
    assert sorted(names(list_datasets(f"{repository}/"))) == sorted(every)
    assert sorted(names(list_datasets(repository, "RATES"))) == ["alice/rates", "com.example.rates"]
    assert names(list_datasets(repository, "alice/")) == ["alice/com.example.weather", "alice/rates"]
    assert list_datasets(repository, "nothing like that") == []
    assert {item.url for item in list_datasets(repository, "bob")} == {f"{repository}/Bob"}


def test_what_is_half_pushed_or_no_dataset_is_passed_over(repository: str):
    make(repository, "whole")
    open_dataset(f"{repository}/half").data.insert(b"x")
    open_dataset(f"{repository}/no name").data.insert(b"x")
    open_dataset(f"{repository}/.hidden").data.insert(b"x")
    assert names(list_datasets(repository)) == ["whole"]


def test_the_end_of_the_history_says_how_much_there_is(repository: str):
    for name in ("cities", "stock"):
        transfer(DatasetLayout.local(KAMU / name), open_dataset(f"{repository}/{name}"))
    for item in list_datasets(repository):
        state = DatasetLayout.local(KAMU / str(item.alias)).chain.state()
        assert item.problem is None
        assert (item.head, item.num_blocks) == (str(state.head), state.sequence_number + 1)
        assert (item.kind, item.num_records) == (state.kind.value, state.num_records)
        assert item.watermark == (str(state.watermark) if state.watermark else None)


def test_rows_are_counted_where_the_last_blocks_have_none(repository: str):
    layout = make_dataset(open_dataset(f"{repository}/slices"))
    add_slice(layout, b"one")
    add_slice(layout, b"two")
    add_info(layout, "something", "something else")
    (item,) = list_datasets(repository)
    assert (item.kind, item.num_records, item.num_blocks) == ("Root", 2, 6)


def test_a_damaged_dataset_is_told_and_hides_no_other(repository: str):
    make(repository, "damaged", "whole")
    blocks = open_dataset(f"{repository}/damaged").blocks
    for name in list(blocks):
        blocks.delete(name)
    damaged, whole = list_datasets(repository)
    assert damaged.problem is not None
    assert "Missing object" in damaged.problem.message
    assert (whole.problem, whole.num_blocks) == (None, 3)


def test_datasets_are_found_by_what_they_say_of_themselves(repository: str):
    for number, name in enumerate(("a", "b", "c")):
        layout = make_dataset(open_dataset(f"{repository}/{name}"), "Old words", number=number)
        append(layout, [SetInfo(description=f"Prices of {name}-metals", keywords=("Commodities", f"daily {name}"))])
        add_slice(layout, b"rows")
    assert names(list_datasets(repository, "prices OF b")) == ["b"]
    (item,) = list_datasets(repository, "DAILY c-met")
    assert (str(item.alias), item.description, item.num_records) == ("c", "Prices of c-metals", 1)
    assert item.keywords == ("Commodities", "daily c")
    assert len(list_datasets(repository, "commod")) == 3
    assert names(list_datasets(repository, "daily metals B")) == ["b"], "words of keywords and of the description"
    assert list_datasets(repository, "commodities spices") == []
    assert list_datasets(repository, "old words") == []


def test_damage_hides_what_a_dataset_says_and_no_other_dataset(repository: str):
    make(repository, "damaged", "whole")
    blocks = open_dataset(f"{repository}/damaged").blocks
    for name in list(blocks):
        blocks.delete(name)
    assert names(list_datasets(repository, "two")) == ["whole"]


def test_only_so_much_of_a_history_is_read_for_a_description(repository: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("odfpy.repository.locations.listing._MAX_BLOCKS", 2)
    layout = make_dataset(open_dataset(f"{repository}/long"), "metals")
    add_slice(layout, b"one")
    assert names(list_datasets(repository, "metals")) == []
    assert names(list_datasets(repository, "long")) == ["long"]


def test_a_repository_that_is_not_there(tmp_path: Path):
    with pytest.raises(NotFound, match="There is no folder"):
        list_datasets(str(tmp_path / "nowhere"))


# --- Nodes, and servers that are none ---


def _infos(*names: str) -> bytes:
    head = (KAMU / "cities" / "refs" / "head").read_text()
    rest = {"kind": "Root", "head": head, "numBlocks": 3, "numRecords": 7, "watermark": None, "other": 1}
    return json.dumps([{"name": name, **rest} for name in names]).encode()


@pytest.mark.parametrize("scheme", ["http", "odf+http"])
def test_nodes_are_asked_page_by_page(tmp_path: Path, scheme: str):
    pages = [_infos(*(f"a{number}" for number in range(1000))), _infos("alice/b")]
    with static_server(tmp_path) as site:
        for end in ("offset=0", "offset=1000"):
            site.special[end] = lambda handler: send(handler, pages.pop(0))
        url = site.url.replace("http", scheme)
        found = list_datasets(url, "x y")
        assert len(found) == 1001
        assert (found[-1].url, found[-1].num_records) == (f"{url}/alice/b", 7)
        assert [path.partition("?")[2] for path in site.asked("/datasets")] == [
            "search=x+y&limit=1000&offset=0",
            "search=x+y&limit=1000&offset=1000",
        ]


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"{}",
        b"[1]",
        _infos("../x"),
        _infos("a").replace(b"f16", b"zzz"),
        _infos("a").replace(b": 3", b": 1e999"),
        b"[" * 100_000,
    ],
)
def test_answers_that_are_no_lists(tmp_path: Path, answer: bytes):
    with static_server(tmp_path) as site:
        site.special["offset=0"] = lambda handler: send(handler, answer)
        with pytest.raises(NotListable, match="the list is not valid"):
            list_datasets(site.url)


def test_a_server_that_tells_the_same_page_for_ever_is_found_out(tmp_path: Path):
    page = _infos(*(f"a{number}" for number in range(1000)))
    with static_server(tmp_path) as site:
        for end in ("offset=0", "offset=1000"):
            site.special[end] = lambda handler: send(handler, page)
        with pytest.raises(NotListable, match="repeatedly"):
            list_datasets(site.url)


def test_a_list_that_never_ends_is_not_read_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("odfpy.http.paging.MAX_DATASETS", 2500)

    def more(handler: SimpleHTTPRequestHandler) -> None:
        offset = int(handler.path.rpartition("=")[2])
        send(handler, _infos(*(f"a{offset + number}" for number in range(1000))))

    with static_server(tmp_path) as site:
        site.special["0"] = more
        with pytest.raises(NotListable, match="more than 2500"):
            list_datasets(site.url)
        assert len(site.asked("/datasets")) == 3


def test_a_plain_file_server_has_no_list(tmp_path: Path):
    with static_server(tmp_path) as site, pytest.raises(NotListable, match="cannot list its datasets"):
        list_datasets(site.url.replace("//", "//user:s3cr3t@"))


def test_a_node_lists_what_everybody_may_read(tmp_path: Path):
    workspace = workspace_at(tmp_path / "node")
    put(workspace, "com.example.open", 1, public=True)
    put(workspace, "alice/com.example.closed", 2)
    with serving(workspace) as server:
        (item,) = list_datasets(f"odf+{server.url}")
        assert str(item.alias) == "com.example.open"
        assert item.head == str(open_dataset(item.url).refs.get(HEAD))
        assert list_datasets(server.url, "closed") == []


# --- odf search ---


@pytest.fixture
def search(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    from odfpy.cli.app import run
    from odfpy.coordinator.workspace import Workspace

    monkeypatch.setenv("HOME", str(tmp_path))
    registry = Workspace.init(tmp_path / "here").remotes.repositories
    for name in ("first", "second"):
        shutil.copytree(KAMU / "cities", tmp_path / name / f"{name}.cities")
        registry.add(name, str(tmp_path / name))

    def call(*arguments: str) -> tuple[int, str, str]:
        code = run(["-w", str(tmp_path / "here"), "search", *arguments])
        return (code, *capfd.readouterr())

    return call


def test_search_gives_what_can_be_pulled(search: Callable[..., tuple[int, str, str]], tmp_path: Path):
    code, out, _ = search("CIT")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["Dataset", "first/first.cities", "second/second.cities"]
    code, out, _ = search("--repo", "first", "--output", "json")
    (item,) = json.loads(out)
    assert (code, item["ref"], item["kind"]) == (0, "first/first.cities", "Root")
    code, out, _ = search("--repo", str(tmp_path / "second"), "-o", "csv")
    assert out.splitlines()[1].startswith(f"file://{tmp_path}/second/second.cities,")


def test_a_place_that_is_gone_keeps_nobody_from_the_others(search: Callable[..., tuple[int, str, str]], tmp_path: Path):
    shutil.rmtree(tmp_path / "first")
    code, out, err = search()
    assert (code, "second/second.cities" in out) == (1, True)
    assert err.startswith(f"error: There is no folder {tmp_path}/first (E110)")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nothing-like-that"], 0, "No dataset has 'nothing-like-that' in its name, description or keywords."),
        (["x", "--repo", "frist"], 1, "Did you mean first?"),
        (["--repo", "ftp://host/x"], 2, "Unsupported URL scheme"),
        (["--repo", "s3:///x"], 2, "Its form is s3://bucket/folder"),
        (["--repo", "a b"], 2, "Not a repository name"),
        (["a", "b"], 2, "b"),
    ],
)
def test_what_search_says(search: Callable[..., tuple[int, str, str]], arguments: list[str], code: int, words: str):
    found, out, err = search(*arguments)
    assert (found, out) == (code, "")
    assert words in err
