"""Places and peers that lie about files, and those that know nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from support.chains.linked import (
    APPEND,
    BARE,
    FULL,
    add,
    commit_unchecked,
    files_workspace,
    ingest,
    name_of,
    objects_in,
    put,
    row,
)
from support.servers.serving import ask, serving
from support.servers.static_server import StaticServer, endless, send, static_server

from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, ObjectNotFound, OdfError
from odfpy.repository.smart_transfer.push import push
from odfpy.repository.smart_transfer.websocket import run_conversation
from odfpy.repository.transfer.linked import MissingLinkedObjects
from odfpy.serving.callers.reachable_objects import ReachableObjects
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.transfer import smart

DATA = b"what was promised" * 1000
NAME = name_of(DATA)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "place").mkdir()
    with static_server(tmp_path / "place") as running:
        yield running


def published(tmp_path: Path, *, extra: str = FULL) -> Workspace:
    origin = files_workspace(tmp_path / "origin", extra=extra)
    add(origin, (1, DATA))
    list(origin.push(["files"], to=str(tmp_path / "place" / "files")))
    return origin


def error_of(copy: Workspace, url: str, **options: str) -> OdfError | None:
    (result,) = copy.pull([url], **options)
    return result.error


def kept(copy: Workspace) -> list[str]:
    """What is beside the slices of copies that have begun, besides blocks."""
    return [path.name for path in (copy.odf / "cache" / "incoming").rglob("*") if str(NAME) in path.name]


LIES: dict[str, Callable[[SimpleHTTPRequestHandler], object]] = {
    "other bytes": lambda handler: send(handler, b"!" * len(DATA)),
    "fewer bytes": lambda handler: send(handler, DATA[:-1]),
    "more bytes": lambda handler: send(handler, DATA + b"!"),
    "without end": endless(),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("extra", [FULL, BARE], ids=["size said", "no size"])
def test_a_server_that_lies_gives_nothing(server: StaticServer, tmp_path: Path, lie: str, extra: str) -> None:
    published(tmp_path, extra=extra)
    server.special[f"/data/{NAME}"] = LIES[lie]
    copy = Workspace.init(tmp_path / "copy")
    assert isinstance(error_of(copy, f"{server.url}/files"), OdfError)
    assert copy.datasets.all() == []
    assert kept(copy) == []
    server.special.clear()
    assert error_of(copy, f"{server.url}/files") is None
    assert objects_in(copy) == {NAME}


@pytest.mark.parametrize(
    "text", ["", "../../../etc/passwd", "refs/head", "f1e20" + "0" * 62, "f" + "00" * 40, "/", "zz", "f1220" + "a" * 64]
)
def test_links_to_what_is_no_object_are_refused(tmp_path: Path, text: str) -> None:
    origin = files_workspace(tmp_path / "origin", merge=APPEND)
    commit_unchecked(origin, [(1, text, 1)])
    place = str(tmp_path / "place" / "files")
    (pushed,) = origin.push(["files"], to=place)
    assert isinstance(pushed.error, IntegrityError)
    assert not (tmp_path / "place" / "files" / "refs" / "head").exists()
    (pushed,) = origin.push(["files"], to=place, files="none")
    assert pushed.error is None
    copy = Workspace.init(tmp_path / "copy")
    error = error_of(copy, place)
    assert isinstance(error, IntegrityError)
    assert "--files none" in (error.hint or "")
    assert error_of(copy, place, files="none") is None


def test_a_row_that_says_another_size_is_found_out(tmp_path: Path) -> None:
    origin = files_workspace(tmp_path / "origin", merge=APPEND)
    put(origin, DATA)
    commit_unchecked(origin, [(1, str(NAME), len(DATA) - 1)])
    (pushed,) = origin.push(["files"], to=str(tmp_path / "place" / "files"))
    assert isinstance(pushed.error, OdfError)
    (report,) = origin.verify(["files"])
    assert [finding.message for finding in report.findings] == [
        f"Damaged file: it has {len(DATA)} bytes, its row says {len(DATA) - 1}"
    ]


def test_many_links_to_nothing_end_in_one_error(tmp_path: Path) -> None:
    origin = files_workspace(tmp_path / "origin", merge=APPEND)
    names = [str(Multihash.of(b"%d" % number)) for number in range(5000)]
    commit_unchecked(origin, [(number, name, 1) for number, name in enumerate(names)])
    place = str(tmp_path / "place" / "files")
    (pushed,) = origin.push(["files"], to=place)
    assert isinstance(pushed.error, MissingLinkedObjects)
    assert "5000 files" in pushed.error.message
    assert len(pushed.error.message) < 300


# --- Nodes -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    workspace = Workspace.init(tmp_path / "served")
    monkeypatch.setenv("ODF_TOKEN", Tokens(workspace.odf).new("admin", Scope.ADMIN))
    return workspace


def test_a_peer_that_knows_nothing_of_files_pushes_rows(served: Workspace, tmp_path: Path) -> None:
    """As the reference does: it neither says that it has files nor sends any."""
    origin = published(tmp_path)
    layout = origin.storage.get("files").layout
    with serving(served) as server:
        talk = push(layout, layout.chain.in_order(), None)
        run_conversation(f"{server.url}/files", "push", talk, layout)
        assert objects_in(served) == set()
        (report,) = served.verify(["files"])
        assert report.ok
        assert report.linked is not None
        assert report.linked.elsewhere == 1
        assert [one.error for one in origin.push(["files"], to=f"odf+{server.url}/files", files="all")] == [None]
        assert objects_in(served) == {NAME}


def test_a_server_that_knows_nothing_of_files_is_asked_as_plain_servers_are(
    served: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = published(tmp_path)
    monkeypatch.setattr(smart, "TAKES_HEADER", "odf-does-not-take")
    monkeypatch.setattr(smart, "LINKS_HEADER", "odf-does-not-hear")
    with serving(served) as server:
        url = f"odf+{server.url}/files"
        assert [one.error for one in origin.push(["files"], to=url)] == [None]
        assert objects_in(served) == set(), "it was sent rows alone"
        put(served, DATA)
        copy = Workspace.init(tmp_path / "copy")
        assert error_of(copy, url) is None
        assert objects_in(copy) == {NAME}


def test_who_says_that_all_is_sent_has_to_send_all(served: Workspace, tmp_path: Path) -> None:
    origin = published(tmp_path)
    layout = origin.storage.get("files").layout
    with serving(served) as server:
        talk = push(layout, layout.chain.in_order(), None)
        with pytest.raises(OdfError, match="E670"):
            run_conversation(f"{server.url}/files", "push", talk, layout, headers={"odf-linked-objects": "all"})
    assert served.datasets.all() == []


def test_a_node_gives_what_rows_link_to_and_nothing_else(served: Workspace, tmp_path: Path) -> None:
    origin = published(tmp_path)
    with serving(served) as server:
        url = f"{server.url}/files"
        assert [one.error for one in origin.push(["files"], to=f"odf+{url}")] == [None]
        (stray,) = put(served, b"of a push under way")
        token = Tokens(served.odf).new("reader", Scope.READ)

        def status(name: Multihash, **headers: str) -> int:
            return ask(f"{url}/data/{name}", token=token, **headers).status

        assert (status(NAME), status(NAME, Range="bytes=5-9"), status(stray)) == (200, 206, 404)
        ingest(served, [row(9, b"of a push under way")])
        assert status(stray) == 200
        served.maintenance.reset("files", str(served.datasets.state("files").sequence_number - 1))
        assert (status(stray), status(NAME)) == (404, 200)


def test_a_node_reads_no_slice_of_a_dataset_without_links(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "plain", extra="{a: 1}")
    add(workspace, (1, b"one"))
    layout = workspace.storage.get("files").layout
    for path in (workspace.storage.get("files").folder / "data").iterdir():
        path.write_bytes(b"nobody looks")
    reach = ReachableObjects()
    assert not reach.has_link(layout, NAME)


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """Move a file away for a moment."""
    path.rename(path.with_suffix(".away"))
    yield
    path.with_suffix(".away").rename(path)


def test_a_block_that_cannot_be_read_for_a_moment_hides_no_file_for_good(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace")
    add(workspace, (1, DATA))
    dataset = workspace.storage.get("files")
    reach = ReachableObjects()
    assert reach.has_link(dataset.layout, NAME)
    dataset.layout.refs.compare_and_swap("tag", None, dataset.chain.head())
    add(workspace, (2, b"later"))
    add(workspace, (3, b"last"))
    last, before, *_ = [hashed.hash for hashed in dataset.reloaded().chain.iter_blocks()]
    assert reach.has(dataset.layout, None, last)
    with unreadable(dataset.folder / "blocks" / str(before)), pytest.raises(ObjectNotFound):
        reach.has_link(dataset.layout, name_of(b"last"))
    for data in (b"last", b"later", DATA):
        assert reach.has_link(dataset.layout, name_of(data))


def test_a_head_that_went_back_and_could_not_be_followed_hides_no_block_for_good(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace")
    add(workspace, (1, DATA))
    dataset = workspace.storage.get("files")
    last, before, oldest, *_ = [hashed.hash for hashed in dataset.chain.iter_blocks()]
    reach = ReachableObjects()
    assert reach.has(dataset.layout, None, last)
    refs = dataset.layout.refs
    refs.compare_and_swap(HEAD, last, before)
    with unreadable(dataset.folder / "blocks" / str(oldest)), pytest.raises(ObjectNotFound):
        reach.has(dataset.layout, None, before)
    refs.compare_and_swap(HEAD, before, last)
    assert reach.has(dataset.layout, None, last)
