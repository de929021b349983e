"""The database of sharing: its form, names, tokens, grants; in SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from support.quick_passwords import quick_passwords
from support.servers.postgres import emptied, postgres

from odfpy.data.duration import Duration
from odfpy.errors import AlreadyExists, InvalidValue, UsageError
from odfpy.federation.store.tables import METADATA  # of all tables: those of sharing, and those of relays
from odfpy.sharing.errors import InvalidCondition, SharedObjectNotFound
from odfpy.sharing.model import PrincipalKind, SharedView, SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.store import database as database_module
from odfpy.sharing.store.database import NEWEST, Database, SharingDatabaseError
from odfpy.sharing.store.histories import ServedHistory

ORDERS = SharePath("sales", "eu", "orders")
SOURCE = TableSource(SourceKind.DATASET, "did:odf:abc", SharedView.CHANGELOG, "v1")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str | None:
    """The setting `sharing.database`."""
    if request.param == "sqlite":
        return None
    return emptied(request.getfixturevalue("server"))


@pytest.fixture
def sharing(tmp_path: Path, url: str | None) -> Iterator[Sharing]:
    found = Sharing.of_workspace(tmp_path, url)
    found.shares.add_share("sales", "All of it")
    found.shares.add_table(ORDERS, SOURCE, "Orders")
    found.principals.add(PrincipalKind.RECIPIENT, "Acme", {"country": "DE"})
    yield found
    found.database.close()


def test_migrations_lead_to_the_tables(tmp_path: Path, url: str | None) -> None:
    opened = Database.in_workspace(tmp_path, url)
    with opened.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []
    folder = Path(database_module.__file__).parent / "migrations"
    assert ScriptDirectory(str(folder)).get_current_head() == NEWEST
    assert url or (tmp_path / "sharing.db").stat().st_mode & 0o077 == 0
    opened.close()


def test_what_was_served_is_remembered_by_whoever_comes_first(sharing: Sharing) -> None:
    key, other = ("did:odf:abc", ""), ("did:odf:abc", "v1")
    first, second, third = (ServedHistory(f"f1620{number:064}", number, 0) for number in (1, 2, 3))
    assert sharing.histories.find(*key) is None
    assert sharing.histories.compare_and_swap(*key, None, first)
    assert not sharing.histories.compare_and_swap(*key, None, second)
    assert sharing.histories.compare_and_swap(*key, first, second)
    assert not sharing.histories.compare_and_swap(*key, first, third)
    assert not sharing.histories.compare_and_swap(*key, replace(second, base=7), third)
    assert (sharing.histories.find(*key), sharing.histories.find(*other)) == (second, None)
    assert sharing.histories.compare_and_swap(*other, None, first)
    with ThreadPoolExecutor(5) as pool:
        tries = [replace(third, base=base) for base in range(5)]
        won = list(pool.map(lambda one: sharing.histories.compare_and_swap(*key, second, one), tries))
    assert won.count(True) == 1
    assert sharing.histories.find(*key) == tries[won.index(True)]


def test_passwords_are_kept_in_both_databases(sharing: Sharing) -> None:
    sharing.principals.add(PrincipalKind.USER, "Ann")
    with quick_passwords():
        sharing.passwords.set("ann", "correct horse battery")
        found = sharing.passwords.log_in("ANN", "correct horse battery", Duration(60))
        assert found is not None
        assert sharing.principals.find(found[1]) == found[0]
        for name in ("\x00", "\ud800", "nobody"):
            assert sharing.passwords.log_in(name, "correct horse battery", Duration(60)) is None
        sharing.passwords.set("ann", "another password")
        assert sharing.principals.find(found[1]) is None


def test_a_database_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    with Database.in_workspace(tmp_path).writing() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SharingDatabaseError, match="newer release"):
        Database.in_workspace(tmp_path)


@pytest.mark.parametrize("url", ["nosuch://x", "not a url", "sqlite:////no/such/folder/x.db"])
def test_a_database_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(SharingDatabaseError):
        Database(url)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "sharing.db").write_bytes(b"something else" * 1000)
    with pytest.raises(SharingDatabaseError, match="not a database"):
        Database.in_workspace(tmp_path)


def test_several_open_a_new_database_at_once(tmp_path: Path, url: str | None) -> None:
    failures: list[BaseException] = []

    def opened() -> None:
        try:
            found = Sharing.of_workspace(tmp_path, url)
            found.shares.shares()
            found.database.close()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=opened) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


# --- Shares ----------------------------------------------------------------------------------------------------------


def test_names_ignore_case(sharing: Sharing) -> None:
    found = sharing.shares.table(SharePath("SALES", "Eu", "oRDERS"))
    assert (found.path, found.source, found.comment) == (ORDERS, SOURCE, "Orders")
    with pytest.raises(AlreadyExists, match="'sales'"):
        sharing.shares.add_share("Sales")
    with pytest.raises(AlreadyExists):
        sharing.shares.add_table(SharePath("Sales", "EU", "Orders"), SOURCE)


@pytest.mark.parametrize(
    ("path", "message"),
    [("sale", "no share 'sale'"), ("sales.e", "no schema 'e'"), ("sales.eu.order", "no table 'order'")],
)
def test_what_is_not_there_is_told_with_a_suggestion(sharing: Sharing, path: str, message: str) -> None:
    with pytest.raises(SharedObjectNotFound, match=message) as caught:
        sharing.shares.remove(SharePath.parse(path))
    assert caught.value.hint is not None
    assert "Did you mean" in caught.value.hint


@pytest.mark.parametrize("text", ["", "a b", "a/b/c/d", "a\x00", "a\x7f", "a.b.c.d", "x" * 256, "a..c", "a/b.c"])
def test_names_that_are_none(text: str) -> None:
    with pytest.raises(InvalidValue):
        SharePath.parse(text)


def test_a_share_goes_with_all_that_is_in_it(sharing: Sharing) -> None:
    sharing.grants.add("acme", ORDERS)
    sharing.shares.remove(SharePath("sales"))
    assert (sharing.shares.shares(), sharing.shares.tables(), sharing.grants.all()) == ([], [], [])


def test_tables_come_in_pages(sharing: Sharing) -> None:
    for number in range(7):
        sharing.shares.add_table(SharePath("sales", f"s{number % 2}", f"T{number}"), SOURCE)
    found: list[str] = []
    after = ("", "")
    while page := sharing.shares.tables(SharePath("sales"), after=after, limit=3):
        found += [str(one.path) for one in page]
        after = (str(page[-1].path.schema).lower(), str(page[-1].path.table).lower())
    assert found == [str(one.path) for one in sharing.shares.tables()]
    assert len(found) == 8


def test_the_database_counts_and_cuts(sharing: Sharing) -> None:
    for number in range(7):
        sharing.shares.add_table(SharePath("sales", f"S{number % 2}", f"T{number}"), SOURCE)
    sharing.shares.add_schema(SharePath("sales", "none"))
    share = sharing.shares.share("SALES")
    counts = sharing.shares.num_tables_by_schema("sales")
    assert {name: counts[name] for name in ("S0", "S1", "none")} == {"S0": 4, "S1": 3, "none": 0}
    assert sharing.shares.num_tables_by_share() == {share.id: 8}
    wanted = (None, SharePath("sales"), SharePath("sales", "s1"), SharePath("sales", "none"))
    assert [sharing.shares.num_tables(one) for one in wanted] == [8, 8, 3, 0]
    assert sharing.shares.tables(offset=2, limit=3) == sharing.shares.tables()[2:5]
    with pytest.raises(SharedObjectNotFound):
        sharing.shares.num_tables(SharePath("nothing"))


# --- Principals ------------------------------------------------------------------------------------------------------


def test_a_token_is_good_until_it_is_not(sharing: Sharing) -> None:
    principals = sharing.principals
    text, token = principals.new_token("acme")
    found = principals.find(text)
    assert found is not None
    assert (found.name, found.attributes, token.expires_at) == ("Acme", {"country": "DE"}, None)
    assert principals.find(text + "x") is None
    assert principals.find("") is None
    principals.change("acme", is_disabled=True)
    assert principals.find(text) is None
    principals.change("acme", is_disabled=False)
    assert principals.find(text) is not None
    assert principals.revoke("acme") == 1
    assert principals.find(text) is None


def test_tokens_are_not_kept(sharing: Sharing, tmp_path: Path) -> None:
    text, _ = sharing.principals.new_token("acme")
    sharing.database.close()
    assert not [path for path in tmp_path.iterdir() if text.encode() in path.read_bytes()]


def test_rotation_leaves_old_tokens_some_time(sharing: Sharing, monkeypatch: pytest.MonkeyPatch) -> None:
    old, _ = sharing.principals.new_token("acme")
    new, token = sharing.principals.new_token("acme", Duration(1000))
    sharing.principals.end_older("acme", token.id, Duration(100))
    assert sharing.principals.find(old) is not None
    now = token.created_at.nanos
    at = {"after": now + 101 * 10**9, "later": now + 1001 * 10**9}

    class Later:
        @staticmethod
        def now() -> Later:
            return Later()

        nanos = at["after"]

    monkeypatch.setattr("odfpy.sharing.store.principals.Timestamp", Later)
    assert sharing.principals.find(old) is None
    monkeypatch.setattr("odfpy.sharing.store.principals._principal", lambda row: row)
    assert sharing.principals.find(new) is not None
    monkeypatch.setattr(Later, "nanos", at["later"])
    assert sharing.principals.find(new) is None


def test_a_rotation_never_makes_a_token_last_longer(sharing: Sharing) -> None:
    sharing.principals.new_token("acme")
    for overlap in (100, 10_000):
        _, token = sharing.principals.new_token("acme")
        sharing.principals.end_older("acme", token.id, Duration(overlap))
    first, second, third = sharing.principals.tokens("acme")
    assert first.revoked_at is not None
    assert second.revoked_at is not None
    assert first.revoked_at < second.revoked_at
    assert third.revoked_at is None


def test_a_link_works_once_for_one_of_many(sharing: Sharing) -> None:
    link = sharing.principals.new_activation("acme", Duration(60), Duration(600))
    found = []
    threads = [threading.Thread(target=lambda: found.append(sharing.principals.activate(link))) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (used,) = [one for one in found if one is not None]
    assert used[0].name == "Acme"
    assert sharing.principals.find(used[1]) is not None
    assert sharing.principals.activate("something") is None


def test_a_link_of_somebody_disabled_is_refused_and_not_used_up(sharing: Sharing) -> None:
    link = sharing.principals.new_activation("acme", Duration(60))
    sharing.principals.change("acme", is_disabled=True)
    assert sharing.principals.activate(link) is None
    assert sharing.principals.tokens("acme") == []
    sharing.principals.change("acme", is_disabled=False)
    assert sharing.principals.activate(link) is not None
    assert sharing.principals.activate(link) is None


def test_groups_have_no_tokens_and_no_groups(sharing: Sharing) -> None:
    sharing.principals.add(PrincipalKind.GROUP, "partners")
    with pytest.raises(UsageError, match="groups have no tokens"):
        sharing.principals.new_token("partners")
    with pytest.raises(UsageError, match="groups have no groups"):
        sharing.principals.join("partners", "partners")
    sharing.principals.join("partners", "acme")
    sharing.principals.join("partners", "ACME")
    assert sharing.principals.members("Partners") == ["Acme"]
    sharing.principals.leave("partners", "acme")
    with pytest.raises(SharedObjectNotFound):
        sharing.principals.leave("partners", "acme")


def test_one_name_is_for_one_principal(sharing: Sharing) -> None:
    with pytest.raises(AlreadyExists, match="recipient 'Acme'"):
        sharing.principals.add(PrincipalKind.USER, "ACME")
    with pytest.raises(SharedObjectNotFound, match="no user 'acme'"):
        sharing.principals.get("acme", PrincipalKind.USER)


# --- Grants ----------------------------------------------------------------------------------------------------------


def test_grants_of_groups_are_grants(sharing: Sharing) -> None:
    acme = sharing.principals.get("acme")
    sharing.principals.add(PrincipalKind.GROUP, "partners")
    sharing.grants.add("partners", SharePath("sales"), columns=["a", "a", "b"], rows="a = 1")
    table = sharing.shares.table(ORDERS)
    assert sharing.reach(acme).view(table) is None
    sharing.principals.join("partners", "acme")
    view = sharing.reach(acme).view(table)
    assert view is not None
    assert view.parts[0].columns == ("a", "b")
    sharing.principals.change("partners", is_disabled=True)
    assert sharing.reach(acme).view(table) is None


def test_the_same_grant_twice_is_one(sharing: Sharing) -> None:
    first = sharing.grants.add("acme", ORDERS, rows="a = 1")
    assert sharing.grants.add("Acme", ORDERS, rows="a = 1") == first
    assert sharing.grants.add("acme", ORDERS, rows="a = 2") != first
    assert sharing.grants.remove(first.id) == first
    with pytest.raises(SharedObjectNotFound):
        sharing.grants.remove(first.id)


def test_grants_that_make_no_sense(sharing: Sharing) -> None:
    with pytest.raises(InvalidValue, match="without columns"):
        sharing.grants.add("acme", ORDERS, columns=[])
    with pytest.raises(InvalidCondition):
        sharing.grants.add("acme", ORDERS, rows="random() > 0.5")
    with pytest.raises(SharedObjectNotFound, match="no user, recipient or group"):
        sharing.grants.add("acne", ORDERS)
    assert sharing.grants.all() == []
