"""The state of a relay: objects, applies, certificates, what happens once, results; in SQLite and PostgreSQL."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from support.federation.documents import ALL, ENTITY, USER, declared, with_changed
from support.servers.postgres import emptied, postgres

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.federation.authority import Authority
from odfpy.federation.errors import AuthenticationFailed, ConcurrentApply, InvalidCertificate, WebObjectNotFound
from odfpy.federation.model.certificates import CertificateFacts, certificate_attributes, load_pem
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.federation.model.steps import plan
from odfpy.federation.relay.requesters import Authorities, Identity
from odfpy.federation.relay.stored_catalog import StoredCatalog
from odfpy.federation.store.results import ResultState
from odfpy.federation.store.store import WebStore
from odfpy.federation.store.tables import METADATA
from odfpy.sharing.store.database import SharingDatabaseError

DAY = 86_400 * 1_000_000_000
ANN = ("User", "ann")
REST = dict.fromkeys(one for one in ALL if one != "Entity")


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
def store(tmp_path: Path, url: str | None) -> Iterator[WebStore]:
    found = WebStore.of_workspace(tmp_path / "odf", url)
    yield found
    found.database.close()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new("acme")[0]


def applied(store: WebStore, folder: Path, *, prune: bool = False, **changed: Any) -> list[str]:
    state = store.applies.state()
    steps = plan(state.web, declared(folder, **changed), prune=prune)
    store.applies.apply(steps, based_on=state.revision, who="ann@here")
    return [str(one) for one in steps]


def later(days: float) -> Timestamp:
    return Timestamp(Timestamp.now().nanos + int(days * DAY))


def test_migrations_lead_to_the_tables(store: WebStore) -> None:
    with store.database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), METADATA) == []


# --- Objects ---------------------------------------------------------------------------------------------------------


def test_objects_are_kept_as_they_were_declared(store: WebStore, tmp_path: Path) -> None:
    assert store.applies.state().revision == 0
    applied(store, tmp_path / "web")
    state = store.applies.state()
    assert state.revision == store.applies.revision == 1
    assert state.web.objects == {one.key: one.spec for one in declared(tmp_path / "web")}
    assert applied(store, tmp_path / "web") == []
    assert store.applies.state().web is not None


def test_prune_removes_and_without_it_nothing_goes(store: WebStore, tmp_path: Path) -> None:
    applied(store, tmp_path / "web")
    rest = dict.fromkeys(ALL)
    assert applied(store, tmp_path / "web", **{**rest, "Entity": ENTITY}) == []
    assert len(store.applies.state().web.objects) == len(ALL)
    applied(store, tmp_path / "web", prune=True, **{**rest, "Entity": ENTITY})
    assert list(store.applies.state().web.objects) == [("Entity", "lineitem")]


def test_of_two_applies_at_once_one_wins_and_the_other_says_so(store: WebStore, tmp_path: Path) -> None:
    state = store.applies.state()
    steps = plan(state.web, declared(tmp_path / "web"), prune=False)
    store.applies.apply(steps, based_on=state.revision, who="ann")
    changed = declared(tmp_path / "web", Entity=with_changed(ENTITY, "information.0.arrow_dtype", "Utf8"))
    other = plan(state.web, changed, prune=False)
    with pytest.raises(ConcurrentApply, match="at the same time; this command changed nothing"):
        store.applies.apply(other, based_on=state.revision, who="bob")
    assert store.applies.state().web.entities["lineitem"].information[0].arrow_dtype == "Int64"
    assert [one.who for one in store.applies.log(10)] == ["ann"]


def test_of_many_applies_at_once_one_wins_each_time(store: WebStore, tmp_path: Path, url: str | None) -> None:
    steps = {
        who: plan(
            RelayObjects({}), declared(tmp_path / who, Entity=with_changed(ENTITY, "name", who), **REST), prune=False
        )
        for who in ("ann", "bob", "eve")
    }
    for number in range(5):
        outcomes: list[str] = []
        start = threading.Barrier(len(steps))

        def apply(who: str, number: int = number, start: threading.Barrier = start, to: list[str] = outcomes) -> None:
            own = WebStore.of_workspace(tmp_path / "odf", url)
            start.wait()
            try:
                own.applies.apply(steps[who], based_on=number, who=who)
                to.append("won")
            except ConcurrentApply:
                to.append("lost")
            own.database.close()

        threads = [threading.Thread(target=apply, args=[who]) for who in steps]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["lost", "lost", "won"]
    assert store.applies.revision == 5
    assert {one.who for one in store.applies.log(5)} >= {key for _, key in store.applies.state().web.objects}


def test_applies_are_written_down_until_they_are_in_the_dataset(store: WebStore, tmp_path: Path) -> None:
    steps = applied(store, tmp_path / "web")
    applied(store, tmp_path / "web", User=None, prune=True)
    first, second = store.applies.unrecorded()
    assert (first.revision, first.who, first.action, list(first.steps)) == (1, "ann@here", "apply", steps)
    store.applies.recorded([1])
    assert store.applies.unrecorded() == [second]
    assert store.applies.log(1) == [second]


# --- Certificates ----------------------------------------------------------------------------------------------------


def test_a_user_has_several_certificates_and_rotation_keeps_the_grants(
    store: WebStore, tmp_path: Path, authority: Authority
) -> None:
    first, second = authority.issue("ann", 30), authority.issue("ann", 30)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "ann.pem").write_text(first.facts.pem)
    user = {**USER, "certificates": ["ann.pem"]}
    applied(store, tmp_path / "web", User=user)
    known = store.certificates
    assert [one.owner for one in known.all()] == [ANN]
    end = later(7)
    old = [one.facts.fingerprint for one in known.all(ANN)]
    known.add(second.facts, ANN, "ann@here", "cert rotate", revoking=old, from_when=end)
    before, after = known.all(ANN)
    assert (before.is_declared, before.revoked_at, after.is_declared, after.revoked_at) == (True, end, False, None)
    now = Timestamp.now()
    assert before.is_good_at(now)
    assert not before.is_good_at(end)
    assert after.is_good_at(end)
    assert not known.is_revoked(first.facts.fingerprint)
    assert known.is_revoked(first.facts.fingerprint, end)
    # Another apply leaves the issued one alone, and what was revoked stays so.
    applied(store, tmp_path / "web", User={**user, "attributes": {}})
    assert [one.revoked_at for one in known.all(ANN)] == [end, None]
    assert known.find(second.facts.fingerprint) == known.all(ANN)[1]


def test_what_is_revoked_stays_so_even_if_it_is_declared_again(
    store: WebStore, tmp_path: Path, authority: Authority
) -> None:
    issued = authority.issue("ann", 30)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "ann.pem").write_text(issued.facts.pem)
    user = {**USER, "certificates": ["ann.pem"]}
    applied(store, tmp_path / "web", User=user)
    store.certificates.revoke([issued.facts.fingerprint], "bob", reason="lost")
    applied(store, tmp_path / "web", User=None, prune=True)
    assert store.certificates.all() == []
    assert store.certificates.is_revoked(issued.facts.fingerprint)
    applied(store, tmp_path / "web", User=user)
    (found,) = store.certificates.all()
    assert not found.is_good_at(Timestamp.now())
    assert found.reason == "lost"
    store.certificates.revoke([issued.facts.fingerprint], "bob", from_when=later(5))
    assert store.certificates.is_revoked(issued.facts.fingerprint), "nothing makes it good again"
    assert [one.action for one in store.applies.log(10)].count("cert revoke") == 2


def test_whom_a_certificate_is_of(store: WebStore, tmp_path: Path, authority: Authority) -> None:
    issued, stranger = authority.issue("ann", 30), authority.issue("nobody", 30)
    applied(store, tmp_path / "web")
    store.certificates.add(issued.facts, ANN, "x", "cert new")
    found = store.owner_of(issued.facts.fingerprint, Timestamp.now())
    assert found == store.applies.state().web.users["ann"]
    assert store.owner_of(stranger.facts.fingerprint, Timestamp.now()) is None
    store.certificates.revoke([issued.facts.fingerprint, stranger.facts.fingerprint], "x", from_when=later(1))
    assert store.owner_of(issued.facts.fingerprint, Timestamp.now()) == found
    for one in (issued, stranger):
        with pytest.raises(InvalidCertificate, match="revoked or has expired"):
            store.owner_of(one.facts.fingerprint, later(2))


def test_a_database_that_fails_is_not_one_in_which_nothing_may_be_seen(
    store: WebStore, tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied(store, tmp_path / "web")
    issued = authority.issue("ann", 30)
    store.certificates.add(issued.facts, ANN, "x", "cert new")
    catalog, ann = StoredCatalog(store), Identity(issued.facts.fingerprint, {})
    (source, *_) = (rows.source for entity in catalog.web.entities for rows in catalog.local(entity))
    catalog.view(source, ann)

    def fails(*_: object) -> None:
        raise SharingDatabaseError("the connection is gone")

    monkeypatch.setattr(store.certificates, "find", fails)
    with pytest.raises(SharingDatabaseError):
        catalog.view(source, ann)
    monkeypatch.undo()
    store.certificates.revoke([issued.facts.fingerprint], "x")
    assert catalog.view(source, ann) is None


def test_nobody_gets_the_certificate_of_somebody_else(store: WebStore, tmp_path: Path, authority: Authority) -> None:
    issued = authority.issue("bob", 30)
    applied(store, tmp_path / "web")
    store.certificates.add(issued.facts, ("User", "bob"), "x", "cert new")
    (tmp_path / "web" / "ann.pem").write_text(issued.facts.pem)
    with pytest.raises(InvalidCertificate, match="is that of bob"):
        applied(store, tmp_path / "web", User={**USER, "certificates": ["ann.pem"]})
    assert store.applies.revision == 2
    with pytest.raises(InvalidCertificate, match="is that of bob"):
        store.certificates.add(issued.facts, ANN, "x", "cert new")


def test_certificates_are_found_by_the_beginning_of_their_fingerprint(store: WebStore, authority: Authority) -> None:
    issued = authority.issue("ann", 30)
    store.certificates.add(issued.facts, ANN, "x", "cert new")
    text = issued.facts.fingerprint[:10].upper()
    assert store.certificates.beginning(f"{text[:2]}:{text[2:]}").facts == issued.facts
    for wrong in (issued.facts.fingerprint[:4], "0" * 12, ""):
        with pytest.raises(WebObjectNotFound):
            store.certificates.beginning(wrong)
    assert store.certificates.find("0" * 64) is None


def test_an_authority_and_those_whom_it_knows(authority: Authority) -> None:
    issued = authority.issue("ann", 30, fields={"O": "Acme", "C": "DE"})
    assert CertificateFacts.of(issued.facts.pem) == issued.facts
    assert certificate_attributes(issued.facts.pem) == {
        "subject.CN": "ann",
        "subject.O": "Acme",
        "subject.C": "DE",
        "issuer.CN": "acme authority",
    }
    other = Authority.new("acme")[0]
    now, leaf = time.time(), load_pem(issued.facts.pem)
    Authorities(authority.facts.pem.encode()).check([leaf], now)
    for trusted, at in ((other, now), (authority, now + 31 * 86_400), (authority, now - 86_400)):
        with pytest.raises(AuthenticationFailed, match="not of a trusted authority, or has expired"):
            Authorities(trusted.facts.pem.encode()).check([leaf], at)
    with pytest.raises(AuthenticationFailed):  # whoever trusts one certificate trusts no other
        Authorities(issued.facts.pem.encode()).check([load_pem(authority.issue("bob", 30).facts.pem)], now)
    with pytest.raises(AuthenticationFailed):
        Authorities(other.facts.pem.encode()).check([leaf, load_pem(authority.facts.pem)], now)
    with pytest.raises(InvalidCertificate, match="No certificates of authorities"):
        Authorities(b"")
    with pytest.raises(InvalidCertificate, match="No field of a subject: X"):
        authority.issue("ann", 30, fields={"X": "y"})


# --- Once ------------------------------------------------------------------------------------------------------------

_ASKING = """
import json, sys
from pathlib import Path
from odfpy.data.timestamp import Timestamp
from odfpy.federation.store.store import WebStore

store = WebStore.of_workspace(Path(sys.argv[1]), sys.argv[2] or None)
print("ready", flush=True)
sys.stdin.readline()
until = Timestamp(Timestamp.now().nanos + 10**12)
print(json.dumps([[store.once.is_first(f"q{n}", until), store.once.redeem(f"t{n}", until)] for n in range(40)]))
"""


def test_of_several_processes_one_is_the_first(store: WebStore, tmp_path: Path, url: str | None) -> None:
    command = [sys.executable, "-c", _ASKING, str(tmp_path / "odf"), url or ""]
    asking = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for one in asking:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in asking:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    answers = [json.loads(one.communicate()[0]) for one in asking]
    for number in range(40):
        assert [sum(answer[number][what] for answer in answers) for what in (0, 1)] == [1, 1]


def test_queries_and_tickets_are_forgotten_after_their_time(store: WebStore) -> None:
    now = Timestamp.now()
    assert store.once.is_first("q", later(1))
    assert not store.once.is_first("q", later(2))
    assert store.once.redeem("q", later(3)), "tickets and queries are different things"
    assert not store.once.redeem("q", later(3))
    assert store.once.forget_old(now) == 0
    assert store.once.forget_old(later(2)) == 1
    assert store.once.is_first("q", later(1))
    for wrong in ("", "x" * 200, "a\x00b", "ü"):
        with pytest.raises(InvalidValue):
            store.once.is_first(wrong, now)


def test_what_is_over_is_removed_by_the_way(store: WebStore, tmp_path: Path, url: str | None) -> None:
    past = Timestamp(Timestamp.now().nanos - DAY)
    assert store.once.is_first("old", past)
    again = WebStore.of_workspace(tmp_path / "odf", url)  # one that has not cleaned yet
    assert again.once.is_first("new", later(1))
    assert again.once.is_first("old", later(1))
    again.database.close()


# --- Results ---------------------------------------------------------------------------------------------------------


def test_results_are_their_owners_only_and_final_states_stay(store: WebStore) -> None:
    results = store.results
    made, is_new = results.add("r", "ann", {"query": "select 1"}, later(1))
    assert is_new
    assert (made.state, made.detail) == (ResultState.WAITING, {"query": "select 1"})
    assert results.add("r", "ann", {}, later(1)) == (made, False)
    assert results.unfinished() == [made]
    for attempt in (lambda: results.get("r", "bob"), lambda: results.add("r", "bob", {}, later(1))):
        with pytest.raises(WebObjectNotFound, match="no such result"):
            attempt()
    assert results.move("r", ResultState.RUNNING)
    assert results.move("r", ResultState.DONE, {"files": ["a"]})
    assert not results.move("r", ResultState.CANCELLED)
    assert (results.get("r", "ann").state, results.get("r", "ann").detail) == (ResultState.DONE, {"files": ["a"]})
    assert [one.id for one in results.owned_by("ann")] == ["r"]
    assert results.unfinished() == results.old() == []
    assert [one.id for one in results.old(later(2))] == ["r"]
    results.remove("r")
    assert results.owned_by("ann") == []
