"""Passwords of users: what can be one, who gets in with it, and which tokens end with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import argon2
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from support.quick_passwords import LITTLE, RECOMMENDED, quick_passwords

from odfpy.data.duration import Duration
from odfpy.errors import InvalidValue
from odfpy.sharing.errors import SharedObjectNotFound
from odfpy.sharing.model import PrincipalKind
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.store import passwords
from odfpy.sharing.store.passwords import MAX_LENGTH, MIN_LENGTH, check_password

PASSWORD = "correct horse battery"
HOUR = Duration(3600)


@pytest.fixture(autouse=True)
def quick() -> Iterator[None]:
    with quick_passwords():
        yield


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Sharing]:
    found = Sharing.of_workspace(tmp_path, None)
    found.principals.add(PrincipalKind.USER, "Ann")
    found.principals.add(PrincipalKind.RECIPIENT, "acme")
    found.passwords.set("ann", PASSWORD)
    yield found
    found.database.close()


def kept(sharing: Sharing, name: str) -> str | None:
    with sharing.database.reading() as connection:
        query = sa.text("SELECT password_hash FROM principals WHERE folded = :name")
        found: str | None = connection.execute(query, {"name": name}).scalar()
        return found


def test_name_and_password_are_those_of_a_user(sharing: Sharing) -> None:
    for name in ("Ann", "ann", "ANN"):
        user = sharing.passwords.check(name, PASSWORD)
        assert user is not None
        assert user.name == "Ann"
    assert PASSWORD not in str(kept(sharing, "ann"))


def test_as_much_work_as_is_recommended(sharing: Sharing) -> None:
    with quick_passwords(RECOMMENDED):
        sharing.passwords.set("ann", PASSWORD)
        assert sharing.passwords.check("ann", PASSWORD) is not None
    assert str(kept(sharing, "ann")).startswith("$argon2id$")
    assert not argon2.PasswordHasher().check_needs_rehash(str(kept(sharing, "ann")))


@pytest.mark.parametrize(
    ("name", "password"),
    [
        ("Ann", "wrong"),
        ("Ann", ""),
        ("Ann", PASSWORD.upper()),
        ("Ann", PASSWORD + "x" * MAX_LENGTH),
        ("Ann", PASSWORD + "\ud800"),
        ("Ann", PASSWORD + "\x00"),
        ("nobody", PASSWORD),
        ("acme", PASSWORD),
        ("", PASSWORD),
        ("\ud800", PASSWORD),
        ("\x00", PASSWORD),
        ("x" * 10_000, PASSWORD),
    ],
)
def test_nobody_else_gets_in(sharing: Sharing, name: str, password: str) -> None:
    assert sharing.passwords.check(name, password) is None
    assert sharing.passwords.log_in(name, password, HOUR) is None


def test_a_letter_is_the_same_however_the_keyboard_writes_it(sharing: Sharing) -> None:
    sharing.passwords.set("Ann", "caf\u00e9-\u00e0-la-carte")
    assert sharing.passwords.check("Ann", "cafe\u0301-a\u0300-la-carte") is not None
    assert sharing.passwords.check("Ann", "cafe-a-la-carte") is None


@pytest.mark.parametrize(
    "password",
    ["", "short", "x" * (MIN_LENGTH - 1), "x" * (MAX_LENGTH + 1), "Long-Name", "one\ntwo-three", "\ud800" * 9],
)
def test_what_can_be_no_password(sharing: Sharing, password: str) -> None:
    sharing.principals.add(PrincipalKind.USER, "long-name")
    with pytest.raises(InvalidValue) as caught:
        sharing.passwords.set("long-name", password)
    assert not password or password not in caught.value.message
    assert kept(sharing, "long-name") is None


@given(st.text(min_size=MIN_LENGTH, max_size=40))
def test_a_text_that_can_be_typed_can_be_a_password(text: str) -> None:
    if text.isprintable():
        check_password("ann", text)
    else:
        with pytest.raises(InvalidValue):
            check_password("ann", text)


def test_only_users_have_passwords(sharing: Sharing) -> None:
    sharing.principals.add(PrincipalKind.GROUP, "partners")
    for name in ("acme", "partners", "nobody"):
        with pytest.raises(SharedObjectNotFound):
            sharing.passwords.set(name, PASSWORD)
        with pytest.raises(SharedObjectNotFound):
            sharing.passwords.remove(name)


def test_whoever_is_kept_out_or_has_no_password_does_not_get_in(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sharing.principals.change("ann", is_disabled=True)
    assert sharing.passwords.check("ann", PASSWORD) is None
    sharing.principals.change("ann", is_disabled=False)
    assert sharing.passwords.check("ann", PASSWORD) is not None
    sharing.passwords.remove("ann")
    assert sharing.passwords.check("ann", PASSWORD) is None
    known = LITTLE.hash(PASSWORD)
    monkeypatch.setattr(passwords, "_nobodys_hash", lambda: known)  # also if it were guessed
    assert sharing.passwords.check("ann", PASSWORD) is None
    assert sharing.passwords.check("nobody", PASSWORD) is None


def test_a_login_gives_a_token_with_an_end(sharing: Sharing) -> None:
    found = sharing.passwords.log_in("ann", PASSWORD, HOUR)
    assert found is not None
    user, text, token = found
    assert sharing.principals.find(text) == user
    assert token.expires_at is not None
    assert token.expires_at.nanos - token.created_at.nanos == 3600 * 10**9


@pytest.mark.parametrize("change", ["set", "remove", "gone"])
def test_tokens_of_a_login_end_with_the_password(sharing: Sharing, change: str) -> None:
    login = sharing.passwords.log_in("ann", PASSWORD, HOUR)
    assert login is not None
    other, _ = sharing.principals.new_token("ann")
    if change == "set":
        sharing.passwords.set("ann", "another password")
    elif change == "remove":
        sharing.passwords.remove("ann")
    else:
        sharing.principals.remove("ann")
    assert sharing.principals.find(login[1]) is None
    assert (sharing.principals.find(other) is None) is (change == "gone")


def test_a_password_that_changes_during_a_login_gives_no_token(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = sharing.principals.new_token

    def made(*arguments: object, **more: object) -> object:
        sharing.passwords.set("ann", "another password")
        return make(*arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(sharing.principals, "new_token", made)
    assert sharing.passwords.log_in("ann", PASSWORD, HOUR) is None
    assert all(one.revoked_at is not None for one in sharing.principals.tokens("ann"))


def test_hashes_of_former_times_are_made_again(sharing: Sharing) -> None:
    weak = argon2.PasswordHasher(time_cost=1, memory_cost=64, parallelism=1).hash(PASSWORD)
    with sharing.database.writing() as connection:
        connection.execute(sa.text("UPDATE principals SET password_hash = :hash WHERE folded = 'ann'"), {"hash": weak})
    assert sharing.passwords.check("ann", "wrong password") is None
    assert kept(sharing, "ann") == weak
    assert sharing.passwords.log_in("ann", PASSWORD, HOUR) is not None
    assert not LITTLE.check_needs_rehash(str(kept(sharing, "ann")))
    assert sharing.passwords.check("ann", PASSWORD) is not None


def test_what_is_no_hash_lets_nobody_in(sharing: Sharing) -> None:
    with sharing.database.writing() as connection:
        connection.execute(sa.text("UPDATE principals SET password_hash = 'x' WHERE folded = 'ann'"))
    assert sharing.passwords.check("ann", PASSWORD) is None


def test_time_does_not_tell_who_there_is(sharing: Sharing) -> None:
    """Half of the time apart would be seen: without the same work, an unknown name is answered tens of times faster."""
    sharing.principals.add(PrincipalKind.USER, "without")
    spent: dict[str, list[float]] = {"ann": [], "nobody": [], "without": [], "acme": []}
    with quick_passwords(argon2.PasswordHasher(memory_cost=16 << 10)):
        sharing.passwords.set("ann", PASSWORD)
        sharing.passwords.check("nobody", PASSWORD)
        for _ in range(5):
            for name, seconds in spent.items():
                began = time.process_time()
                assert sharing.passwords.check(name, "a wrong password") is None
                seconds.append(time.process_time() - began)
    times = [median(seconds) for seconds in spent.values()]
    assert max(times) < 3 * min(times), spent


def test_an_admin_is_one_until_it_is_taken_away(sharing: Sharing) -> None:
    assert not sharing.principals.get("ann").is_admin
    assert sharing.principals.change("ann", is_admin=True).is_admin
    assert sharing.principals.get("ann").is_admin
    assert not sharing.principals.change("ann", is_admin=False).is_admin


def test_a_database_from_before_keeps_its_tokens(tmp_path: Path) -> None:
    former = Sharing.of_workspace(tmp_path, None)
    former.principals.add(PrincipalKind.USER, "ann")
    text, _ = former.principals.new_token("ann")
    with former.database.writing() as connection:
        connection.execute(sa.text("ALTER TABLE tokens DROP COLUMN is_login"))
        for name in sa.inspect(connection).get_table_names():
            if name.startswith(("web_", "served_")):  # which came later
                connection.execute(sa.text(f"DROP TABLE {name}"))
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001'"))
    former.database.close()
    sharing = Sharing.of_workspace(tmp_path, None)
    sharing.passwords.set("ann", PASSWORD)
    assert sharing.principals.find(text) is not None
    assert sharing.passwords.log_in("ann", PASSWORD, HOUR) is not None
    sharing.database.close()
