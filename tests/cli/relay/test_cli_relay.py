"""Commands of relays: from nothing to documents, certificates and users."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from cli.conftest import Odf
from support.chains.workspaces import copied
from support.federation.documents import document
from support.servers.certificates import self_signed

from odfpy.cli.app import run
from odfpy.coordinator.workspace import Workspace
from odfpy.federation.identity import RelayIdentity
from odfpy.federation.model.certificates import CertificateFacts, load_pem
from odfpy.federation.relay.requesters import Authorities


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    found = Workspace.init(tmp_path / "workspace")
    monkeypatch.chdir(found.root)
    return found


@pytest.fixture(scope="module")
def initialized(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with a relay."""
    found = Workspace.init(tmp_path_factory.mktemp("initialized"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found.root)
        assert run(["relay", "init", "na"]) == 0
    return found


@pytest.fixture(scope="module")
def applied(initialized: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The workspace with the relay, to which its documents were applied."""
    found = copied(initialized, tmp_path_factory.mktemp("applied"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(found.root)
        assert run(["relay", "apply", "-f", "web"]) == 0
    return found


@pytest.fixture
def relay(initialized: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it, which is the current folder."""
    found = copied(initialized, tmp_path / "workspace")
    monkeypatch.chdir(found.root)
    return found


@pytest.fixture
def applied_relay(applied: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it, which is the current folder."""
    found = copied(applied, tmp_path / "workspace")
    monkeypatch.chdir(found.root)
    return found


def test_from_nothing_to_a_relay_whose_sources_answer(odf: Odf, workspace: Workspace) -> None:
    assert "`odf relay init NAME`" in odf("relay", "status").says
    made = odf("relay", "init", "na", "--host", "na.example.com")
    assert "`odf relay apply -f web`" in made.err + made.out
    assert (workspace.odf / "relay" / "ca.key").stat().st_mode & 0o077 == 0
    assert "already has a relay" in odf("relay", "init", "na").says
    dry = odf("relay", "apply", "-f", "web", "--dry-run")
    assert dry.out.splitlines()[:4] == [
        "+ entity customer",
        "+ local data crm",
        "+ local mapping customer",
        "+ user ann",
    ]
    assert "4 changes; nothing was changed" in dry.err + dry.out
    assert odf("relay", "status", "-o", "json").json["revision"] == 0
    assert odf("relay", "apply", "-f", "web").code == 0
    again = odf("relay", "apply", "-f", "web", "--prune")
    assert "Everything is as web declares it" in again.err + again.out
    status = odf("relay", "status", "--check", "-o", "json")
    assert status.code == 0
    assert status.json["sources"] == [{"data": "crm", "kind": "files", "trouble": []}]
    assert (status.json["name"], status.json["revision"], status.json["entities"]) == ("na", 1, ["customer"])


def test_a_source_that_does_not_answer(odf: Odf, relay: Workspace) -> None:
    odf("relay", "apply", "-f", "web")
    Path("web/customers.csv").write_text("id,nom\n1,Ann\n")
    status = odf("relay", "status", "--check", "-o", "json")
    assert status.code == 1
    assert "customers: " in status.json["sources"][0]["trouble"][0]


def test_what_is_wrong_with_documents(odf: Odf, relay: Workspace) -> None:
    Path("web/data.yaml").write_text(Path("web/data.yaml").read_text().replace("cents > 0", "cent > 0"))
    failed = odf("relay", "apply", "-f", "web")
    assert failed.code == 2
    assert "web/data.yaml, line " in failed.says
    assert "local data crm.data_sources.0.default_permission.allowed_rows" in failed.says
    assert odf("relay", "log", "-o", "json").json == []


@pytest.mark.parametrize("place", [".odf/relay/relay.csv", "web/../.odf/x.csv"])
def test_nothing_of_the_workspaces_own_folder_is_shown(odf: Odf, relay: Workspace, place: str) -> None:
    text = Path("web/data.yaml").read_text().replace("customers.csv", str(Path(place).absolute()))
    Path("web/data.yaml").write_text(text)
    assert "cannot be a source: it contains keys and passwords" in odf("relay", "apply", "-f", "web").says


def test_every_change_is_in_the_log_and_in_the_dataset(odf: Odf, relay: Workspace) -> None:
    odf("relay", "apply", "-f", "web")
    odf("relay", "user", "add", "bob", "--attribute", "country=DE")
    Path("web/users.yaml").unlink()
    assert odf("relay", "apply", "-f", "web", "--prune").out.splitlines() == ["- user ann", "- user bob"]
    log = odf("relay", "log", "-o", "json").json
    assert [(one["revision"], one["action"], one["steps"][-1]) for one in log] == [
        (3, "apply", "- user bob"),
        (2, "user add", "+ user bob"),
        (1, "apply", "+ user ann"),
    ]
    assert all("@" in one["who"] for one in log)
    assert [one["revision"] for one in odf("relay", "log", "-n", "1", "-o", "json").json] == [3]
    rows = odf(
        "sql", "--engine", "datafusion", "-c", 'select revision, relay, action from "odf.web"', "-o", "json"
    ).json
    assert sorted((row["revision"], row["relay"], row["action"]) for row in rows) == [
        (1, "na", "apply"),
        (2, "na", "user add"),
        (3, "na", "apply"),
    ]


def test_certificates(odf: Odf, relay: Workspace) -> None:
    odf("relay", "apply", "-f", "web")
    assert odf("relay", "cert", "new", "ANN", "--field", "O=Acme", "--to", "keys").code == 0
    (pem,) = Path("keys").glob("ann-*.pem")
    facts = CertificateFacts.of(pem.read_text())
    Authorities(RelayIdentity.open(relay.odf).authorities.read_bytes()).check([load_pem(facts.pem)], time.time())
    assert facts.subject == "CN=ann,O=Acme"
    assert pem.with_suffix(".key").stat().st_mode & 0o077 == 0
    assert odf("relay", "cert", "rotate", "ann", "--overlap", "1d", "--to", "keys").code == 0
    listed = odf("relay", "cert", "list", "ann", "-o", "json").json
    assert [(one["good"], one["revokedAt"] is None) for one in listed] == [(True, False), (True, True)]
    assert odf("relay", "cert", "revoke", listed[1]["fingerprint"][:12], "--reason", "lost").code == 0
    assert [one["good"] for one in odf("relay", "cert", "list", "-o", "json").json] == [True, False]
    (user,) = odf("relay", "user", "list", "-o", "json").json
    assert (user["name"], user["certificates"]) == ("ann", 1)
    assert odf("relay", "log", "-o", "json").json[0]["steps"] == [
        f"- certificate {listed[1]['fingerprint'][:16]}: lost"
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("cert", "new", "nobody"), "No user or peer 'nobody'"),
        (("cert", "new", "ann", "--days", "0"), "Not a number of days"),
        (("cert", "new", "ann", "--field", "O"), "Not a field of a subject"),
        (("cert", "new", "ann", "--field", "X=y"), "No field of a subject: X"),
        (("cert", "new", "ann", "--field", "C=Germany"), "cannot have this subject"),
        (("cert", "new", "ann", "--to", "web/users.yaml"), "web/users.yaml"),
        (("cert", "revoke", "0123456789"), "No certificate begins with"),
        (("user", "add", "Ann"), "The user or peer 'Ann' already exists"),
        (("user", "add", "a b"), "Not a name of a user"),
        (("user", "show", "an"), "No user or peer 'an'"),
        (("user", "remove", "bob"), "No user or peer 'bob'"),
        (("init", "other", "--cert", "x"), "need each other"),
        (("log", "-n", "x"), "--num"),
    ],
)
@pytest.mark.usefixtures("applied_relay")
def test_what_makes_no_sense(odf: Odf, arguments: tuple[str, ...], says: str) -> None:
    outcome = odf("relay", *arguments)
    assert outcome.code in (1, 2)
    assert says in outcome.says
    assert len(odf("relay", "log", "-o", "json").json) == 1


def test_users(odf: Odf, relay: Workspace) -> None:
    odf("relay", "apply", "-f", "web")
    odf("relay", "user", "add", "bob")
    assert odf("relay", "user", "show", "bob", "-o", "json").json["sees"] == [
        {"source": "crm/customers", "pairs": [{"columns": ["id", "name"], "rows": '"cents" > 0'}]}
    ]
    assert odf("relay", "user", "show", "ann", "-o", "json").json["sees"] == [
        {"source": "crm/customers", "pairs": [{"columns": "*", "rows": "true"}]}
    ]
    assert odf("relay", "user", "remove", "bob").code == 0
    assert [one["name"] for one in odf("relay", "user", "list", "-o", "json").json] == ["ann"]


def test_certificates_that_somebody_else_issues(odf: Odf, workspace: Workspace, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    given = ("--cert", str(certificate), "--key", str(key), "--ca", str(certificate))
    (tmp_path / "no.key").write_text("nothing")
    assert "not a key in PEM form" in odf("relay", "init", "na", *given[:3], str(tmp_path / "no.key"), *given[4:]).says
    assert odf("relay", "init", "na", *given).code == 0
    odf("relay", "apply", "-f", "web")
    assert "has no authority of its own" in odf("relay", "cert", "new", "ann").says
    user = {"name": "eve", "certificates": [str(certificate)]}
    Path("web/eve.yaml").write_text(document("User", user))
    assert odf("relay", "apply", "-f", "web").out.splitlines() == ["+ user eve"]
    (listed,) = odf("relay", "cert", "list", "-o", "json").json
    assert (listed["name"], listed["declared"], listed["good"]) == ("eve", True, True)


def test_other_authorities_are_trusted(odf: Odf, relay: Workspace, tmp_path: Path) -> None:
    other = RelayIdentity.make(tmp_path / "other", "eu")
    found = odf("relay", "cert", "trust", str(other.authorities))
    assert (found.code, "(CN=eu authority)" in found.out) == (0, True)
    again = odf("relay", "cert", "trust", str(other.authorities))
    assert "is already trusted" in again.err + again.out
    status = odf("relay", "status", "-o", "json").json
    assert status["trusts"] == ["CN=na authority", "CN=eu authority"]
    odf("relay", "user", "add", "bob")
    assert odf("relay", "cert", "new", "bob").code == 0  # by its own authority, as before
    assert odf("relay", "log", "-o", "json").json[-1]["action"] == "cert trust"
    for wrong, says in ((str(other.certificate), "is not an authority"), ("nowhere.pem", "Cannot read")):
        refused = odf("relay", "cert", "trust", wrong)
        assert (refused.code, says in refused.says) == (2, True)
    assert len(RelayIdentity.open(relay.odf).trusted) == 2
