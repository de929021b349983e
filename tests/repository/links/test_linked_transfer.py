"""Objects that rows link to go where the rows go, by whatever protocol, all of them or those that are wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.chains.linked import add, files_workspace, name_of, objects_in, put, row
from support.chains.workspaces import copied
from support.servers.buckets import s3_buckets
from support.servers.serving import serving
from support.servers.static_server import static_server

from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue, OdfError, SchemaError
from odfpy.repository.transfer.linked import MissingLinkedObjects
from odfpy.serving.callers.tokens import Scope, Tokens

LOGS = {number: f"log {number}".encode() * number for number in range(1, 6)}
ALL = {name_of(data) for data in LOGS.values()}

Place = Callable[[Path], "Iterator[tuple[str, str]]"]
"""Gives the URL to push to, and the one to pull from."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Five rows in three blocks: the third and fifth are of another kind and a later day."""
    made = files_workspace(tmp_path_factory.mktemp("prepared") / "origin")
    add(made, (1, LOGS[1]), (2, LOGS[2]))
    add(made, (3, LOGS[3]), (5, LOGS[5]), day=9, what="trace")
    add(made, (4, LOGS[4]), day=9)
    return made


@pytest.fixture
def origin(prepared: Workspace, tmp_path: Path) -> Workspace:
    """A copy of it."""
    return copied(prepared, tmp_path / "origin")


@pytest.fixture(scope="module")
def buckets() -> Iterator[str]:
    """An S3 server, in which each test has a folder of its own."""
    with s3_buckets() as host:
        yield host


@contextmanager
def folder(tmp_path: Path) -> Iterator[tuple[str, str]]:
    place = str(tmp_path / "place" / "files")
    yield place, place


@contextmanager
def plain_http(tmp_path: Path) -> Iterator[tuple[str, str]]:
    (tmp_path / "place").mkdir()
    with static_server(tmp_path / "place") as server:
        yield str(tmp_path / "place" / "files"), f"{server.url}/files"


@contextmanager
def node(tmp_path: Path) -> Iterator[tuple[str, str]]:
    served = Workspace.init(tmp_path / "served")
    with serving(served) as server:
        yield (f"odf+{server.url}/files",) * 2


PLACES = {"folder": folder, "http": plain_http, "node": node}


@pytest.fixture(params=["folder", "http", "s3", "node"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    if request.param == "s3":
        yield (f"s3+http://{request.getfixturevalue('buckets')}/data/{tmp_path.name}/files",) * 2
        return
    with PLACES[request.param](tmp_path) as urls:
        if request.param == "node":
            monkeypatch.setenv("ODF_TOKEN", Tokens(tmp_path / "served" / ".odf").new("admin", Scope.ADMIN))
        yield urls


def push(workspace: Workspace, to: str | None = None, **options: object) -> PullResult:
    (result,) = workspace.push(["files"], to=to, **options)
    if result.error is not None:
        raise result.error
    return result


def pull(workspace: Workspace, ref: str = "files", **options: object) -> PullResult:
    (result,) = workspace.pull([ref], **options)
    if result.error is not None:
        raise result.error
    return result


def copy_at(tmp_path: Path, url: str, **options: object) -> Workspace:
    workspace = Workspace.init(tmp_path / "copy")
    pull(workspace, url, **options)
    return workspace


def is_valid(workspace: Workspace) -> bool:
    return all(report.ok for report in workspace.verify(["files"]))


def test_everything_goes_and_comes(origin: Workspace, place: tuple[str, str], tmp_path: Path) -> None:
    to, url = place
    assert f"5 files ({sum(map(len, LOGS.values()))} bytes)" in push(origin, to).notes
    copy = copy_at(tmp_path, url)
    assert objects_in(copy) == ALL
    assert is_valid(copy)

    add(origin, (6, b"one more"), (7, LOGS[1]))
    assert "1 file (8 bytes)" in push(origin).notes
    assert "1 file (8 bytes)" in pull(copy).notes
    assert objects_in(copy) == ALL | {name_of(b"one more")}
    assert pull(copy).outcome is PullOutcome.UP_TO_DATE


def test_a_copy_has_what_was_asked_for_and_goes_on_like_that(
    origin: Workspace, place: tuple[str, str], tmp_path: Path
) -> None:
    to, url = place
    push(origin, to)
    copy = copy_at(tmp_path, url, files="what=trace")
    assert objects_in(copy) == {name_of(LOGS[3]), name_of(LOGS[5])}
    add(origin, (6, b"a trace"), what="trace")
    add(origin, (7, b"a log"))
    push(origin)
    pull(copy)
    assert objects_in(copy) == {name_of(LOGS[3]), name_of(LOGS[5]), name_of(b"a trace")}
    assert pull(copy, files="all").outcome is PullOutcome.UP_TO_DATE, "no new rows, but files"
    assert objects_in(copy) == ALL | {name_of(b"a trace"), name_of(b"a log")}


def test_rows_come_without_files(origin: Workspace, place: tuple[str, str], tmp_path: Path) -> None:
    to, url = place
    push(origin, to)
    copy = copy_at(tmp_path, url, files="none")
    assert objects_in(copy) == set()
    assert copy.datasets.state("files").num_records == 5


@pytest.mark.parametrize(
    ("files", "keys"),
    [
        ("since=2024-01-09", {3, 4, 5}),
        ("until=2024-01-09", {1, 2}),
        ("since=2024-01-01T00:00:00Z;until=2024-01-09;what=log", {1, 2}),
        ("what=log,trace;id=4,5,77", {4, 5}),
        ("what=nothing of the kind", set()),
        ("available", {1, 2, 3, 4, 5}),
    ],
)
def test_conditions_choose_rows(origin: Workspace, tmp_path: Path, files: str, keys: set[int]) -> None:
    with folder(tmp_path) as (to, url):
        push(origin, to)
        assert objects_in(copy_at(tmp_path, url, files=files)) == {name_of(LOGS[key]) for key in keys}


@pytest.mark.parametrize("files", ["", "some", "what", "what=", "=x", "since=yesterday", "what=a;what=b"])
def test_other_texts_are_refused(tmp_path: Path, files: str) -> None:
    with pytest.raises(InvalidValue):
        copy_at(tmp_path, "https://example.com/files", files=files)


def test_columns_that_are_not_there_are_refused(origin: Workspace, tmp_path: Path) -> None:
    with folder(tmp_path) as (to, url):
        push(origin, to)
        with pytest.raises(SchemaError, match="no column 'waht'") as caught:
            copy_at(tmp_path, url, files="waht=log")
    assert "what" in (caught.value.hint or "")


def test_a_place_that_lacks_files_is_refused_unless_that_is_fine(
    origin: Workspace, place: tuple[str, str], tmp_path: Path
) -> None:
    to, url = place
    push(origin, to, files="what=trace")
    with pytest.raises(MissingLinkedObjects, match="3 files that rows link to") as caught:
        copy_at(tmp_path, url)
    assert "--files available" in (caught.value.hint or "")
    copy = Workspace.open(tmp_path / "copy")
    result = pull(copy, url, files="available")
    assert any("3 files" in note for note in result.notes)
    assert objects_in(copy) == {name_of(LOGS[3]), name_of(LOGS[5])}


def test_a_partial_copy_sends_what_it_has_and_is_completed_later(
    origin: Workspace, place: tuple[str, str], tmp_path: Path
) -> None:
    to, url = place
    with folder(tmp_path / "first") as (first, _):
        push(origin, first)
        copy = copy_at(tmp_path, first, files="what=trace")
    push(copy, to)
    other = Workspace.init(tmp_path / "other")
    pull(other, url, files="available")
    assert objects_in(other) == {name_of(LOGS[3]), name_of(LOGS[5])}
    push(origin, to, files="all")
    pull(other, files="all")
    assert objects_in(other) == ALL


def test_what_was_let_go_as_recorded_is_not_missed(origin: Workspace, place: tuple[str, str], tmp_path: Path) -> None:
    to, url = place
    add(origin, (1, LOGS[1]), day=10, removed="2024-03-01T00:00:00Z")
    list(origin.maintenance.gc(["files"], may_remove=lambda _dataset, names: names))
    push(origin, to)
    copy = copy_at(tmp_path, url)
    assert objects_in(copy) == ALL - {name_of(LOGS[1])}
    assert is_valid(copy)


def test_a_copy_that_lost_a_file_does_not_pass_for_whole(
    origin: Workspace, place: tuple[str, str], tmp_path: Path
) -> None:
    origin.storage.get("files").layout.data.delete(name_of(LOGS[2]))
    with pytest.raises(MissingLinkedObjects, match="a file that rows link to"):
        push(origin, place[0])


def test_branches_take_their_files_along(origin: Workspace, place: tuple[str, str], tmp_path: Path) -> None:
    to, _ = place
    push(origin, to)
    put(origin, b"staged")
    file = origin.root / "staged.ndjson"
    file.write_text(json.dumps(row(9, b"staged")), encoding="utf-8")
    list(origin.ingest("files", [file], branch="next"))
    results = list(origin.push(["files"], branches=["next"]))
    assert [result.error for result in results] == [None, None]
    assert "1 file (6 bytes)" in results[1].notes


def test_an_object_with_other_bytes_is_never_taken(origin: Workspace, tmp_path: Path) -> None:
    with folder(tmp_path) as (to, url):
        push(origin, to)
        file = Path(to) / "data" / str(name_of(LOGS[5]))
        file.write_bytes(file.read_bytes()[:-1] + b"!")
        with pytest.raises(OdfError, match="have the hash"):
            copy_at(tmp_path, url)
        (left,) = (tmp_path / "copy" / ".odf" / "cache" / "incoming").iterdir()
        assert name_of(LOGS[5]) not in {Multihash.parse(path.name) for path in (left / "data").iterdir()}
