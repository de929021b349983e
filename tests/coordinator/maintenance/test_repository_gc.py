"""What nobody needs goes from folders and buckets, too; what a push beside may be about to refer to stays."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.chains.signing import sign
from support.chains.small_datasets import add_info, add_slice, contents, image, make_dataset
from support.servers.azure import azure_containers
from support.servers.serving import workspace_at

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.coordinator.maintenance import repository_gc
from odfpy.coordinator.maintenance.gc import GcReport
from odfpy.coordinator.maintenance.repository_gc import GOOD_WHILE, RepositoryGarbage
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import ZERO, Duration
from odfpy.data.multihash import Multihash
from odfpy.errors import ConcurrentUpdate, DatasetNotFound, IntegrityError, UsageError
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.objects import run_all
from odfpy.repository.transfer.simple import transfer

NAME = "com.example.rates"


@pytest.fixture(params=["folder", "bucket"])
def repository(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of a repository with two datasets."""
    if request.param == "folder":
        (tmp_path / "there").mkdir()
        url = (tmp_path / "there").as_uri()
        filled(url)
        yield url
    else:
        with azure_containers("data") as settings:
            monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
            filled("az://data/there")
            yield "az://data/there"


def filled(url: str) -> None:
    for number, name in enumerate((NAME, "alice/other"), 1):
        add_slice(make_dataset(open_dataset(f"{url}/{name}"), "one", number=number), b"rows", b"a checkpoint")


def rewritten(layout: DatasetLayout) -> list[Multihash]:
    """A history that was overwritten: its head was a block further, with a slice and a checkpoint."""
    head = layout.chain.head()
    names = [*add_slice(layout, b"gone", b"gone, too"), layout.chain.head()]
    sign(layout, layout.chain.in_order()[-1])
    layout.refs.compare_and_swap("head", layout.chain.head(), head)
    return names


def collected(url: str, *names: str, older_than: Duration = ZERO, dry_run: bool = False) -> dict[str | None, GcReport]:
    return {report.name: report for report in RepositoryGarbage(url, older_than, dry_run).collect(names)}


def test_what_no_reference_reaches_goes_and_nothing_else(repository: str) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    before = image(layout)
    gone = rewritten(layout)
    full = image(layout)
    planned = collected(repository, dry_run=True)
    assert image(layout) == full
    done = collected(repository)
    assert [report.error for report in done.values()] == [None, None]
    assert [str(item.path) for item in done[NAME].found] == [str(item.path) for item in planned[NAME].found]
    assert {str(item.path).rpartition("/")[2] for item in done[NAME].found} == {str(name) for name in gone}
    assert done[NAME].size > len(b"gone" + b"gone, too")
    assert done["alice/other"].found == ()
    assert image(layout) == before
    assert layout.side is not None
    assert list(layout.side.names("info/signatures")) == []


def test_what_is_young_stays(repository: str) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    rewritten(layout)
    full = image(layout)
    assert collected(repository, older_than=GOOD_WHILE)[NAME].found == ()
    assert image(layout) == full


def test_what_a_branch_or_tag_reaches_stays(repository: str) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    *_, block = rewritten(layout)
    layout.refs.compare_and_swap(ReferenceName.of(ReferenceKind.TAG, "v1").reference, None, block)
    assert collected(repository)[NAME].found == ()


def test_only_the_datasets_that_are_named(repository: str) -> None:
    rewritten(open_dataset(f"{repository}/{NAME}"))
    assert list(collected(repository, "alice/%")) == ["alice/other"]
    assert list(collected(repository, NAME)) == [NAME]
    with pytest.raises(DatasetNotFound, match="nothing"):
        collected(repository, "nothing")


def test_damaged_dataset_is_left_alone(repository: str) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    rewritten(layout)
    layout.blocks.delete(layout.chain.in_order()[0].hash)
    full = contents(layout.data)
    error = collected(repository)[NAME].error
    assert error is not None
    assert "unneeded files cannot be identified" in error.message
    assert contents(layout.data) == full


class Beside(RepositoryGarbage):
    """Somebody does something when it is known what is of no use."""

    meanwhile: Callable[[], object]

    def _useless(self, layout, known, limit):  # type: ignore[no-untyped-def]
        yield from list(super()._useless(layout, known, limit))
        self.meanwhile()


def test_what_a_push_has_found_to_be_of_use_meanwhile_stays(tmp_path: Path) -> None:
    """It does not send it again, and moves the head only later."""
    url = (tmp_path / "repository").as_uri()
    filled(url)
    layout = open_dataset(f"{url}/{NAME}")
    rewritten(layout)
    for store in (layout.data, layout.checkpoints, layout.blocks):
        for item in store.stored():
            os.utime(tmp_path / "repository" / NAME / store.describe(item.name).rpartition(f"{NAME}/")[2], (0, 0))
    garbage = Beside(url, GOOD_WHILE)
    object.__setattr__(garbage, "meanwhile", lambda: layout.data.touch(Multihash.of(b"gone")))
    (report,) = garbage.collect([NAME])
    assert (report.error, len(report.found)) == (None, 2)
    assert b"gone" in contents(layout.data).values()


def test_when_somebody_pushes_meanwhile_nothing_goes(repository: str) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    rewritten(layout)
    garbage = Beside(repository, ZERO)
    object.__setattr__(garbage, "meanwhile", lambda: add_info(layout, "news"))
    (report,) = garbage.collect([NAME])
    assert isinstance(report.error, ConcurrentUpdate)
    assert report.found == ()
    assert b"gone" in contents(layout.data).values()


def test_what_was_removed_before_somebody_pushed_is_told(repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = open_dataset(f"{repository}/{NAME}")
    data, _, block = rewritten(layout)
    monkeypatch.setattr(repository_gc, "_AT_ONCE", 1)

    def then_somebody_pushes(work: list[Callable[[], None]]) -> None:
        run_all(work)
        layout.refs.compare_and_swap("head", layout.chain.head(), block)

    monkeypatch.setattr(repository_gc, "run_all", then_somebody_pushes)
    error = collected(repository, NAME)[NAME].error
    assert isinstance(error, ConcurrentUpdate)
    assert error.message.startswith(f"{NAME} was pushed to at the moment of the removal: ")
    assert str(data) in error.message


def test_push_that_finds_old_garbage_of_use_makes_it_young(tmp_path: Path) -> None:
    source = make_dataset(DatasetLayout.in_memory(), "one")
    add_slice(source, b"rows")
    there = DatasetLayout.local(tmp_path / "there" / NAME)
    transfer(source, there)
    add_slice(source, b"more")
    new = source.chain.in_order()[-1]
    there.data.insert(b"more")
    there.blocks.insert_stream(io.BytesIO(source.blocks.read(new.hash)), new.hash)
    year_ago = time.time() - 365 * 86400
    for store in (there.data, there.blocks):
        for name in store:
            os.utime(str(store.local_path(name)), (year_ago, year_ago))

    old = {str(item.path).rpartition("/")[2] for item in collected(str(tmp_path / "there"), dry_run=True)[NAME].found}
    assert old == {str(new.hash), str(Multihash.of(b"more"))}
    head = there.chain.head()
    transfer(source, there)
    there.refs.compare_and_swap("head", new.hash, head)  # as it was a moment before the push was done
    assert collected(str(tmp_path / "there"), older_than=GOOD_WHILE)[NAME].found == ()


def test_leftovers_of_killed_writers_go_from_a_folder_when_they_are_old(tmp_path: Path) -> None:
    there = tmp_path / "there"
    filled(there.as_uri())
    leftover = there / NAME / "data" / ".tmp-1234"
    leftover.write_bytes(b"half")
    assert collected(str(there), older_than=GOOD_WHILE)[NAME].found == ()
    os.utime(leftover, (0, 0))
    assert [item.path for item in collected(str(there), older_than=GOOD_WHILE)[NAME].found] == [leftover]
    assert not leftover.exists()


def test_places_that_can_only_be_read_are_refused(tmp_path: Path) -> None:
    for url in ("https://data.example.com", "odf+https://data.example.com"):
        with pytest.raises(UsageError, match="is read-only"):
            collected(url)


def test_by_the_name_of_a_repository(tmp_path: Path) -> None:
    workspace: Workspace = workspace_at(tmp_path / "here")
    there = tmp_path / "there"
    filled(there.as_uri())
    rewritten(DatasetLayout.local(there / NAME))
    workspace.remotes.repositories.add("mirror", str(there))
    assert [len(report.found) for report in workspace.maintenance.gc_repository("mirror", older_than=ZERO)] == [3, 0]
    damaged = there / NAME / "refs" / "head"
    damaged.write_text("nonsense")
    (report,) = workspace.maintenance.gc_repository("mirror", [NAME])
    assert isinstance(report.error, IntegrityError)
