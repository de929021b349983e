"""Files of a folder: each once, in order, with its event time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from glob import glob
from pathlib import Path

import pytest
from support.ingest.fetching import NOW, Fetcher

from odfpy.chain.events import SourceState
from odfpy.chain.sources import (
    EventTimeFromMetadata,
    EventTimeFromPath,
    EventTimeFromSystemTime,
    FetchFilesGlob,
    SourceOrdering,
)
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.fetch import FetchContext, fetch
from odfpy.ingest.source_state import ETAG, etag_state

DAILY = EventTimeFromPath(r"(\d+-\d+-\d+)\.csv", "%Y-%m-%d")


def test_each_file_is_an_input_with_its_name_as_state(
    run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path
):
    make_files("in/2024-03-02.csv", "in/2024-03-01.csv", "in/notes.txt", "elsewhere/2024-03-03.csv")
    first, second = run_fetch(FetchFilesGlob("in/*.csv", DAILY))
    assert first.path == tmp_path / "in/2024-03-01.csv"
    assert first.name == "2024-03-01.csv"
    assert first.state == SourceState("default", "odf/etag", "2024-03-01.csv")
    assert first.event_time == Timestamp.parse("2024-03-01")
    assert not first.is_temporary
    assert second.name == "2024-03-02.csv"


def test_only_files_after_the_last_are_new(run_fetch: Fetcher, make_files: Callable[..., None]):
    make_files("a.csv", "b.csv", "c.csv", "d.csv")
    step = FetchFilesGlob("*.csv")
    assert [file.name for file in run_fetch(step, state=etag_state("b.csv"))] == ["c.csv", "d.csv"]
    assert run_fetch(step, state=etag_state("d.csv")) == []
    assert [file.name for file in run_fetch(step, state=etag_state("bb.csv"))] == ["c.csv", "d.csv"]
    assert len(run_fetch(step, state=etag_state("d.csv"), force=True)) == 4


@pytest.mark.parametrize("pattern", ["in/**/data/**/*.csv", "in/**/**/*.csv"])
def test_a_file_that_matches_in_several_ways_is_one(
    run_fetch: Fetcher, make_files: Callable[..., None], pattern: str
) -> None:
    make_files("in/data/2024/data/x.csv", "in/data/y.csv")
    assert [file.path.name for file in run_fetch(FetchFilesGlob(pattern))] == ["x.csv", "y.csv"]


def test_a_link_to_a_folder_above_gives_no_file_another_name(
    run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path
) -> None:
    make_files("in/a.csv", "in/b/c.csv", "other/d.csv")
    (tmp_path / "in/self").symlink_to(".")
    (tmp_path / "in/b/up").symlink_to("..")
    (tmp_path / "in/linked").symlink_to("../other")
    assert [file.name for file in run_fetch(FetchFilesGlob("in/**/*.csv"))] == ["a.csv", "b/c.csv", "linked/d.csv"]
    assert [file.name for file in run_fetch(FetchFilesGlob("in/self/*.csv"))] == ["a.csv"]


@pytest.mark.parametrize(
    "pattern", ["in/**/*.csv", "**/*.csv", "in/**", "**/data/*", "in/*/**/x.*", "**", "in/.h/**/*"]
)
def test_files_of_any_number_of_folders_are_those_of_glob(
    run_fetch: Fetcher, make_files: Callable[..., None], pattern: str, tmp_path: Path
) -> None:
    make_files("in/x.csv", "in/data/x.csv", "in/.h/x.csv", "in/.h/data/y.csv", "in/data/.z.csv", "in/data/e/x.txt")
    found = {file.path for file in run_fetch(FetchFilesGlob(pattern))}
    assert found == {tmp_path / path for path in glob(pattern, root_dir=tmp_path, recursive=True) if "." in path[-5:]}  # noqa: PTH207


def test_names_are_ordered_by_code_point(run_fetch: Fetcher, make_files: Callable[..., None]):
    make_files("b.csv", "B.csv", "ä.csv", "10.csv", "9.csv")
    names = [file.name for file in run_fetch(FetchFilesGlob("*.csv", order=SourceOrdering.BY_NAME))]
    assert names == ["10.csv", "9.csv", "B.csv", "b.csv", "ä.csv"]


def test_files_of_several_folders_are_known_by_their_path(run_fetch: Fetcher, make_files: Callable[..., None]):
    make_files("in/b/1.csv", "in/a/1.csv", "in/a/x/1.csv")
    assert [file.name for file in run_fetch(FetchFilesGlob("in/*/1.csv"))] == ["a/1.csv", "b/1.csv"]
    names = [file.name for file in run_fetch(FetchFilesGlob("in/**/*.csv"), state=etag_state("a/1.csv"))]
    assert names == ["a/x/1.csv", "b/1.csv"]


def test_order_by_event_time(run_fetch: Fetcher, make_files: Callable[..., None]):
    make_files("x-2024-02-01.csv", "z-2024-01-01.csv", "y-2024-02-01.csv", "a-2024-03-01.csv")
    step = FetchFilesGlob("*.csv", DAILY, order=SourceOrdering.BY_EVENT_TIME)
    names = [file.name for file in run_fetch(step)]
    assert names == ["z-2024-01-01.csv", "x-2024-02-01.csv", "y-2024-02-01.csv", "a-2024-03-01.csv"]
    assert [file.name for file in run_fetch(step, state=etag_state(names[1]))] == names[2:]
    assert [file.name for file in run_fetch(step, state=etag_state("gone-2024-02-15.csv"))] == names[3:]


def test_event_time_from_metadata_is_the_time_of_modification(
    run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path
):
    make_files("a.csv", "b.csv")
    os.utime(tmp_path / "a.csv", ns=(0, 2_000_000_001))
    os.utime(tmp_path / "b.csv", ns=(0, 1_000_000_000))
    step = FetchFilesGlob("*.csv", EventTimeFromMetadata(), order=SourceOrdering.BY_EVENT_TIME)
    assert [(file.name, file.event_time.nanos) for file in run_fetch(step)] == [
        ("b.csv", 1_000_000_000),
        ("a.csv", 2_000_000_001),
    ]
    assert [file.name for file in run_fetch(step, state=etag_state("b.csv"))] == ["a.csv"]
    with pytest.raises(FetchError, match=r"File 'c\.csv' was removed"):
        run_fetch(step, state=etag_state("c.csv"))


@pytest.mark.parametrize("event_time", [None, EventTimeFromSystemTime()])
def test_event_time_is_else_that_of_the_ingest(run_fetch: Fetcher, make_files: Callable[..., None], event_time):
    make_files("a.csv")
    assert run_fetch(FetchFilesGlob("*.csv", event_time))[0].event_time == NOW


@pytest.mark.parametrize(
    ("source", "name", "wanted"),
    [
        (EventTimeFromPath(r"(\d+)\.csv", "%Y%m%d"), "20240229.csv", "2024-02-29T00:00:00Z"),
        (EventTimeFromPath(r"(\d+)\.csv", "yyyyMMddHH"), "2024022913.csv", "2024-02-29T13:00:00Z"),
        (EventTimeFromPath(r"(\d{4}-\d\d-\d\d)"), "x-2024-02-29.csv", "2024-02-29T00:00:00Z"),
        (EventTimeFromPath(r"^(\d{4})\.csv$", "%Y"), "2024.csv", "2024-01-01T00:00:00Z"),
    ],
)
def test_event_time_from_the_path(
    run_fetch: Fetcher, make_files: Callable[..., None], source: EventTimeFromPath, name: str, wanted: str
):
    make_files(name)
    assert str(run_fetch(FetchFilesGlob("*.csv", source))[0].event_time) == wanted


@pytest.mark.parametrize(
    ("source", "error", "message"),
    [
        (EventTimeFromPath(r"(\d+)x"), FetchError, r"it does not match the pattern `\(\\d\+\)x`"),
        (EventTimeFromPath(r"(x)?a"), FetchError, "it does not match the pattern"),
        (EventTimeFromPath(r"(a)", "%Y"), FetchError, "Not a time in the format %Y: 'a'"),
        (EventTimeFromPath(r"a\.csv"), InvalidValue, "has no group"),
        (EventTimeFromPath(r"(a"), InvalidValue, "is not a regular expression"),
        (EventTimeFromPath(r"(a)", "%Q"), FetchError, "'%Q', which is not known"),
    ],
)
def test_path_without_an_event_time(
    run_fetch: Fetcher, make_files: Callable[..., None], source: EventTimeFromPath, error: type[Exception], message: str
):
    make_files("a.csv")
    with pytest.raises(error, match=message):
        run_fetch(FetchFilesGlob("*.csv", source))


def test_files_before_one_without_event_time_are_fetched(make_files: Callable[..., None], tmp_path: Path):
    make_files("2024-01-01.csv", "x.csv")
    inputs = fetch(FetchFilesGlob("*.csv", DAILY), FetchContext(now=NOW, root=tmp_path, scratch=tmp_path))
    assert next(inputs).name == "2024-01-01.csv"
    with pytest.raises(FetchError):
        next(inputs)


def test_no_file_is_an_error_only_if_there_never_was_one(run_fetch: Fetcher, tmp_path: Path):
    (tmp_path / "in").mkdir()
    with pytest.raises(FetchError, match="No file matches 'in/"):
        run_fetch(FetchFilesGlob("in/*.csv"))
    assert run_fetch(FetchFilesGlob("in/*.csv"), state=SourceState("default", ETAG, "a.csv")) == []


@pytest.mark.parametrize("path", ["in/*.csv", "in/*/x/*.csv", "in/sub/a.csv", "in/file.txt/*.csv"])
@pytest.mark.parametrize("state", [None, SourceState("default", ETAG, "a.csv")])
def test_a_folder_that_is_gone_is_an_error(
    run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path, path: str, state: SourceState | None
):
    if "file.txt" in path:
        make_files("in/file.txt")
    with pytest.raises(FetchError, match=f"The folder of '{re.escape(path)}' does not exist") as caught:
        run_fetch(FetchFilesGlob(path), state=state)
    assert "mounted" in (caught.value.hint or "")


def test_templates_and_absolute_paths(run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path):
    make_files("in/a.csv")
    step = FetchFilesGlob("${{ env.FOLDER }}/*.csv")
    (file,) = run_fetch(step, environment={"FOLDER": str(tmp_path / "in")}, root=Path("/"))
    assert (file.name, file.path) == ("a.csv", tmp_path / "in/a.csv")


def test_folders_are_no_files(run_fetch: Fetcher, make_files: Callable[..., None]):
    make_files("a.csv/b.txt", "c.csv")
    assert [file.name for file in run_fetch(FetchFilesGlob("*.csv"))] == ["c.csv"]


def test_name_that_is_no_text_is_an_error(run_fetch: Fetcher, tmp_path: Path):
    (tmp_path / os.fsdecode(b"\xff.csv")).touch()
    with pytest.raises(FetchError, match="is not UTF-8"):
        run_fetch(FetchFilesGlob("*.csv"))


@pytest.mark.parametrize("event_time", [None, EventTimeFromSystemTime()])
def test_order_by_event_time_is_that_of_names_if_all_files_have_the_same_time(
    run_fetch: Fetcher, make_files: Callable[..., None], event_time
):
    make_files("b.csv", "a.csv", "c.csv")
    step = FetchFilesGlob("*.csv", event_time, order=SourceOrdering.BY_EVENT_TIME)
    assert [file.name for file in run_fetch(step)] == ["a.csv", "b.csv", "c.csv"]
    assert [file.name for file in run_fetch(step, state=etag_state("b.csv"))] == ["c.csv"]


@pytest.mark.parametrize("order", [None, *SourceOrdering])
def test_file_that_comes_late_but_is_before_the_last_one_is_not_taken_in(
    run_fetch: Fetcher, make_files: Callable[..., None], order: SourceOrdering | None
):
    step = FetchFilesGlob("*.csv", DAILY, order=order)
    make_files("2024-01-01.csv", "2024-01-03.csv")
    last = run_fetch(step)[-1]
    make_files("2024-01-02.csv", "2024-01-04.csv")
    assert [file.name for file in run_fetch(step, state=last.state)] == ["2024-01-04.csv"]


def test_hidden_files_and_links_to_nowhere_are_left_alone(
    run_fetch: Fetcher, make_files: Callable[..., None], tmp_path: Path
):
    make_files(".a.csv", "b.csv")
    (tmp_path / "c.csv").symlink_to(tmp_path / "nowhere")
    (tmp_path / "d.csv").symlink_to(tmp_path / "b.csv")
    assert [file.name for file in run_fetch(FetchFilesGlob("*.csv"))] == ["b.csv", "d.csv"]


def test_folder_that_cannot_be_read_is_an_error_and_not_an_empty_one(run_fetch: Fetcher, tmp_path: Path):
    (tmp_path / "in").symlink_to(tmp_path / "in")
    with pytest.raises(FetchError, match=r"The folder of 'in/\*.csv' cannot be read: Too many levels"):
        run_fetch(FetchFilesGlob("in/*.csv"), state=etag_state("a.csv"))


@pytest.mark.parametrize("order", [None, *SourceOrdering])
def test_each_file_is_taken_in_once_over_many_pulls(
    run_fetch: Fetcher, make_files: Callable[..., None], order: SourceOrdering | None
):
    step = FetchFilesGlob("**/*.csv", EventTimeFromPath(r"(\d+-\d+-\d+)"), order=order)
    state, seen = None, []
    for day in range(1, 20):
        make_files(f"in/2024-01-{day:02d}.csv")
        for file in run_fetch(step, state=state):
            state = file.state
            seen.append(file.name)
    assert seen == [f"in/2024-01-{day:02d}.csv" for day in range(1, 20)]
