"""Numbers of versions of datasets whose histories are written anew, as several servers give them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.small_datasets import add_info, add_slice, set_head
from support.examples import examples
from support.servers.serving import put

from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.sharing.model import SharedView, SourceKind, TableSource
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.histories import ServedHistories, ServedHistory
from odfpy.sharing.tables.contract import NoSuchVersion, ReadableTable, TableFile
from odfpy.sharing.tables.dataset import DatasetTable
from odfpy.sharing.tables.numbering import HISTORY_STEP, VersionNumbers
from odfpy.sharing.tables.opener import TableOpener
from odfpy.sharing.tables.visible import VisibleTable


@dataclass
class Server:
    """A server of a dataset, which has a connection of its own to the database of shares."""

    workspace: Workspace
    source: TableSource
    url: str | None = None
    asked: int = 0

    def __post_init__(self) -> None:
        self.database = Database.in_workspace(self.workspace.odf, self.url)
        self.opener = TableOpener(
            [self.workspace.storage], [self.workspace.queries.service], VersionNumbers(self._histories)
        )

    def _histories(self) -> ServedHistories:
        self.asked += 1
        return ServedHistories(self.database)

    def table(self) -> ReadableTable:
        return self.opener.open(self.source)


@dataclass
class Served:
    """A dataset that servers share, and what is done to it."""

    workspace: Workspace
    dataset: StoredDataset
    heads: list[Multihash] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.noted()

    @property
    def source(self) -> TableSource:
        return TableSource(SourceKind.DATASET, str(self.dataset.handle.id), SharedView.CHANGELOG)

    def server(self, **more: Any) -> Server:
        return Server(self.workspace, self.source, **more)

    def noted(self) -> None:
        self.heads.append(self.dataset.chain.head())

    def grow(self, slices: int = 1) -> None:
        """Add as many slices, which are like no others."""
        for _ in range(slices):
            self.count += 1
            add_slice(self.dataset.layout, b"rows %d" % self.count)
            self.noted()

    def describe(self) -> None:
        """Add a block without rows."""
        self.count += 1
        add_info(self.dataset.layout, str(self.count))
        self.noted()

    def go(self, place: int) -> None:
        """Move the head to one that was there before, if its blocks are there still."""
        head = self.heads[place % len(self.heads)]
        if head in self.dataset.layout.blocks:
            set_head(self.dataset.layout, head)
            self.noted()

    def clean(self) -> None:
        """Remove what the head does not reach."""
        list(self.workspace.maintenance.gc(["rates"]))


@pytest.fixture
def served(tmp_path: Path) -> Served:
    return served_in(tmp_path)


def served_in(folder: Path) -> Served:
    workspace = Workspace.init(folder / "workspace")
    return Served(workspace, put(workspace, "rates", 1))  # with one slice


def contents(table: ReadableTable, number: int) -> list[str]:
    """The files of a version that show."""
    files = table.files(table.version(number))
    return [file.identity for file in files if not isinstance(table, VisibleTable) or even(file)]


def versions(table: ReadableTable) -> dict[int, list[str]]:
    """All versions of a table, by their numbers."""
    return {number: contents(table, number) for number in range(table.base, table.latest.number + 1)}


# --- Examples --------------------------------------------------------------------------------------------------------


def test_a_history_that_grows_goes_on(served: Served) -> None:
    server = served.server()
    before = versions(server.table())
    served.grow(3)
    served.describe()
    assert versions(server.table()).items() > before.items()
    assert (server.table().base, server.table().latest.number) == (0, 4)
    assert versions(served.server().table()) == versions(server.table())


def test_another_history_begins_beyond_all_that_was_served(served: Served) -> None:
    server = served.server()
    served.grow(3)
    assert server.table().latest.number == 4
    served.go(0)
    served.grow(7)
    table = server.table()
    assert (table.base, table.latest.number) == (HISTORY_STEP, HISTORY_STEP + 8)
    for number in (0, 4, 5, 6, HISTORY_STEP - 1):
        with pytest.raises(NoSuchVersion, match=f"no version {number} any more: its history was rewritten") as caught:
            table.version(number)
        assert "To follow its changes again" in str(caught.value.hint)
    with pytest.raises(NoSuchVersion) as caught:
        table.version(HISTORY_STEP + 9)
    assert "anew" not in caught.value.message
    assert contents(table, HISTORY_STEP) == []


def test_a_reset_alone_takes_versions_away_and_gives_them_back(served: Served) -> None:
    server = served.server()
    served.grow(3)
    before = versions(server.table())
    served.go(1)
    table = server.table()
    assert versions(table) == {number: before[number] for number in (0, 1, 2)}
    served.go(3)
    assert versions(server.table()) == before
    served.go(1)
    assert versions(served.server().table()) == versions(table)
    served.clean()  # now nobody can tell any more whether the versions that are left are those that were
    assert served.server().table().base == HISTORY_STEP


def test_a_history_that_comes_back_has_new_numbers(served: Served) -> None:
    server = served.server()
    served.grow(3)
    server.table()
    served.go(0)
    served.grow(1)
    assert server.table().base == HISTORY_STEP
    served.go(3)
    assert server.table().base == 2 * HISTORY_STEP
    assert served.server().table().base == 2 * HISTORY_STEP


@pytest.mark.parametrize(
    ("last", "base"),
    [(0, 1), (HISTORY_STEP - 2, 1), (HISTORY_STEP - 1, 2), (HISTORY_STEP, 2), (7 * HISTORY_STEP - 1, 8)],
)
def test_what_followers_ask_for_next_is_left_out(served: Served, last: int, base: int) -> None:
    server = served.server()
    other = ServedHistory(str(Multihash.of(b"another block")), last, 0)
    assert ServedHistories(server.database).compare_and_swap(served.source.location, "", None, other)
    assert server.table().base == base * HISTORY_STEP > last + 1


def test_tags_and_branches_have_numbers_of_their_own(served: Served) -> None:
    served.grow(2)
    served.workspace.branches.create("rates", ReferenceKind.BRANCH, "work")
    source = TableSource(SourceKind.DATASET, served.source.location, SharedView.CHANGELOG, "work")
    branch, head = Server(served.workspace, source), served.server()
    assert branch.table().latest.number == head.table().latest.number == 3
    served.go(0)
    served.grow()
    assert (branch.table().base, head.table().base) == (0, HISTORY_STEP)
    assert Server(served.workspace, TableSource(SourceKind.DATASET, source.location, at="head")).table().base


def test_the_database_is_asked_once_for_a_head(served: Served) -> None:
    server = served.server()
    current = TableSource(SourceKind.DATASET, served.source.location, SharedView.CURRENT)
    for _ in range(3):
        server.table()
        server.opener.open(current)
    assert server.asked == 1
    served.grow()
    for _ in range(3):
        server.table()
    assert server.asked == 2
    assert served.server().table().base == 0


def test_a_database_that_cannot_be_written(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("odfpy"), "propagate", True)
    served.grow()
    served.server().table()
    path = served.workspace.odf / "sharing.db"
    server = served.server(url=f"sqlite:///file:{path}?mode=ro&uri=true")
    served.grow(2)
    for _ in range(2):
        assert server.table().latest.number == 4
    served.go(0)
    served.grow(1)
    assert server.table().base == HISTORY_STEP
    assert "not that it was" in caplog.text
    assert served.server().table().base == HISTORY_STEP
    assert server.table().base == HISTORY_STEP
    assert caplog.text.count("not that it was") == 3


def test_several_serve_a_new_head_at_once(served: Served) -> None:
    servers = [served.server() for _ in range(4)]
    for _ in range(3):
        for _ in range(3):
            served.grow()
            with ThreadPoolExecutor(len(servers)) as pool:
                bases = {table.base for table in pool.map(Server.table, servers)}
            assert len(bases) == 1
        served.go(0)


def test_a_request_that_began_before_a_commit_is_of_the_same_history(served: Served) -> None:
    slow, fast = served.server(), served.server()
    head = served.dataset.chain.head()
    served.grow(2)
    assert fast.table().base == 0
    numbers = VersionNumbers(lambda: ServedHistories(slow.database))
    assert numbers.base(served.dataset, head, "") == 0  # as if it had looked at the head before
    assert fast.table().base == 0
    assert fast.table().latest.number == 3


# --- Any history, any requests ---------------------------------------------------------------------------------------

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 3)),
        st.tuples(st.just("describe"), st.just(0)),
        st.tuples(st.just("go"), st.integers(0, 20)),
        st.tuples(st.just("clean"), st.just(0)),
        st.tuples(st.just("serve"), st.integers(0, 1)),
        st.tuples(st.just("serve"), st.integers(0, 1)),
    ),
    max_size=15,
)


def even(file: TableFile) -> bool:
    return int(file.identity[-1], 16) % 2 == 0


def whole(table: ReadableTable) -> ReadableTable:
    return table


def some(table: ReadableTable) -> ReadableTable:
    """The table for somebody who sees the rows of about half of the slices."""
    return VisibleTable(table, even)


@dataclass
class Follower:
    """A client that reads a table once, and then follows its changes as Spark's stream does."""

    number: int = -1
    rows: list[str] = field(default_factory=list)

    def poll(self, table: ReadableTable) -> None:
        last = table.latest
        if last.number < self.number:  # a stream waits until there is something new
            return
        try:
            if self.number < last.number:
                changes = table.changes(table.version(self.number + 1), last)
                self.rows = [*self.rows, *(change.file.identity for change in changes)]
        except NoSuchVersion:
            self.rows = contents(table, last.number)
        self.number = last.number


@pytest.mark.parametrize("seen_by", [whole, some])
@settings(max_examples=examples(15, 40), deadline=None)
@given(steps=_STEPS)
def test_a_number_means_the_same_rows_or_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    seen_by: Callable[[ReadableTable], ReadableTable],
    steps: list[tuple[str, int]],
) -> None:
    served = served_in(tmp_path_factory.mktemp("served"))
    servers = [served.server(), served.server()]
    known: dict[int, list[str]] = {}
    follower = Follower()
    for what, number in [*steps, ("grow", 1), ("serve", 0), ("serve", 1)]:
        if what == "serve":
            table = seen_by(servers[number].table())
            now = versions(table)
            for one, rows in known.items():
                if one in now:
                    assert now[one] == rows
                else:
                    with pytest.raises(NoSuchVersion):
                        table.version(one)
            known |= now
            follower.poll(table)
            assert follower.number > table.latest.number or follower.rows == now[table.latest.number]
        elif what in ("describe", "clean"):
            getattr(served, what)()
        else:
            getattr(served, what)(number)
    assert follower.number == table.latest.number
    for server in servers:
        server.database.close()


def test_the_table_itself_begins_at_any_number(served: Served) -> None:
    served.grow(2)
    plain, other = (
        DatasetTable(served.dataset, SharedView.CHANGELOG, served.workspace.queries.service, base) for base in (0, 70)
    )
    for ours, theirs in ((whole(plain), whole(other)), (some(plain), some(other))):
        assert {number + 70: rows for number, rows in versions(ours).items()} == versions(theirs)
        assert ours.latest.time == theirs.latest.time
        assert theirs.as_of(theirs.latest.time).number == theirs.latest.number
        assert theirs.first_from(ours.version(0).time).number == ours.first_from(ours.version(0).time).number + 70
