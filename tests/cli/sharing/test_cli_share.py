"""Commands of sharing: shares and their tables, recipients, groups, grants."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli.conftest import Odf, Outcome
from deltalake import write_deltalake
from support.chains.workspaces import copied
from support.processes.terminal import terminal
from support.servers.azure import azure_containers
from support.servers.serving import ask, serving
from support.servers.static_server import static_server

from odfpy.cli.app import run
from odfpy.coordinator.workspace import Workspace
from odfpy.repository.bucket.location import open_bucket, parse_bucket_url
from odfpy.repository.credentials import Credentials, server_of
from odfpy.sharing.sharing import Sharing

ROWS = pa.table({"id": [1, 2]})


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with the database of sharing, in which is nothing: its migrations take longer than most tests."""
    made = Workspace.init(tmp_path_factory.mktemp("empty"))
    assert run(["-w", str(made.root), "share", "list", "-q"]) == 0
    assert (made.odf / "sharing.db").exists()
    return made


@pytest.fixture
def workspace(empty: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it, which is the current folder."""
    copied(empty, tmp_path / "workspace")
    monkeypatch.chdir(tmp_path / "workspace")
    return tmp_path / "workspace"


def test_a_folder_is_kept_by_its_absolute_path(odf: Odf, workspace: Path) -> None:
    (workspace / "files").mkdir()
    pq.write_table(ROWS, workspace / "files/a.parquet")
    write_deltalake(workspace / "delta", ROWS)
    assert odf("share", "add", "sales").code == 0
    assert odf("share", "add", "sales.eu.files", "--parquet", "files").code == 0
    assert odf("share", "add", "sales.eu.people", "--delta", "delta").code == 0
    shown = odf("share", "show", "sales", "-o", "json").json
    assert [(one["table"], one["kind"], one["source"], one["shown"]) for one in shown] == [
        ("sales.eu.files", "parquet", str(workspace / "files"), None),
        ("sales.eu.people", "delta", str(workspace / "delta"), None),
    ]


def test_a_table_that_cannot_be_opened_is_not_added(odf: Odf, workspace: Path) -> None:
    odf("share", "add", "sales")
    (workspace / "files").mkdir()
    (workspace / "files/a.parquet").write_bytes(b"something else")
    for kind, place, says in (
        ("--parquet", "files", "a.parquet"),
        ("--parquet", "nothing", "Cannot open the folder"),
        ("--delta", "files", "is not a Delta table"),
        ("--iceberg", "tests:eu.nothing", "cannot be read"),
    ):
        outcome = odf("share", "add", "sales.eu.people", kind, place)
        assert outcome.code != 0
        assert says in outcome.says
    assert odf("share", "show", "sales", "-o", "json").json == []


def test_a_folder_of_a_bucket_is_kept_by_its_url(
    odf: Odf, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(workspace / "delta", ROWS)
    with azure_containers("lake") as settings:
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", settings)
        bucket = open_bucket(parse_bucket_url("az://lake"))
        for path in (workspace / "delta").rglob("*.*"):
            key = path.relative_to(workspace).as_posix()
            bucket.demand(key, bucket.client.put, key, path.read_bytes())
        odf("share", "add", "sales")
        outcome = odf("share", "add", "sales.eu.people", "--delta", "az://lake/delta/")
        assert outcome.code == 0, outcome.err
        refused = odf("share", "add", "sales.eu.none", "--parquet", "az://lake/none")
        assert (refused.code, "nothing in the folder" in refused.says) == (2, True)
        declared = tmp_path / "shares.yaml"
        table = "tables: {eu.people: {delta: az://lake/delta}, eu.log: {parquet: az://lake/delta}}"
        declared.write_text(f"kind: Shares\nversion: 1\nshares:\n  sales: {{{table}}}\n")
        assert "eu.log" in odf("share", "apply", "-f", str(declared)).out
        shown = odf("share", "show", "sales", "-o", "json").json
    assert {(one["table"], one["source"]) for one in shown} == {
        ("sales.eu.people", "az://lake/delta"),
        ("sales.eu.log", "az://lake/delta"),
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("sales.eu.people",),
        ("sales.eu", "--parquet", "files"),
        ("sales.eu.people", "rates", "--parquet", "files"),
        ("sales.eu.people", "--delta", "files", "--parquet", "files"),
        ("sales.eu.people", "--parquet", "files", "--changelog"),
        ("sales.eu.people", "--parquet", "files", "--at", "v1"),
    ],
)
def test_what_does_not_go_together(odf: Odf, workspace: Path, arguments: tuple[str, ...]) -> None:
    odf("share", "add", "sales")
    outcome = odf("share", "add", *arguments)
    assert outcome.code == 2
    assert "hint: " in outcome.err


# --- Recipients, groups, grants --------------------------------------------------------------------------------------


def test_a_recipient_gets_one_file(odf: Odf, workspace: Path) -> None:
    assert "needs the URL of the server" in odf("recipient", "add", "acme").says
    assert odf("recipient", "list", "-o", "json").json == []  # nothing was half done
    odf("config", "set", "sharing.url", "https://data.example.com")
    assert odf("recipient", "add", "acme", "--attribute", "country=DE", "--expires", "90d").code == 0
    profile = json.loads((workspace / "acme.share").read_text())
    assert profile["endpoint"] == "https://data.example.com/delta-sharing/"
    assert (profile["shareCredentialsVersion"], set(profile)) == (
        1, {"shareCredentialsVersion", "endpoint", "bearerToken", "expirationTime"},
    )  # fmt: skip
    assert (workspace / "acme.share").stat().st_mode & 0o077 == 0
    printed = odf("recipient", "rotate", "acme", "--overlap", "1h", "--to", "-", "--profile-version", "2").json
    assert (printed["type"], printed["bearerToken"] == profile["bearerToken"]) == ("bearer_token", False)
    shown = odf("recipient", "show", "acme", "-o", "json").json
    assert (shown["attributes"], len(shown["tokens"])) == ({"country": "DE"}, 2)
    assert profile["bearerToken"] not in str(shown)
    assert odf("recipient", "revoke", "acme").err == "acme: revoked 2 tokens\n"
    link = odf("recipient", "link", "acme").out
    assert link.startswith("https://data.example.com/delta-sharing/activate/")


def test_a_profile_that_cannot_be_written_changes_nothing(odf: Odf, workspace: Path) -> None:
    odf("config", "set", "sharing.url", "https://data.example.com")
    (workspace / "tree").mkdir()
    assert "Cannot write tree" in odf("recipient", "add", "acme", "--to", "tree").says
    assert odf("recipient", "add", "acme").code == 0
    assert "Cannot write tree" in odf("recipient", "rotate", "acme", "--overlap", "0s", "--to", "tree").says
    old, new = odf("recipient", "show", "acme", "-o", "json").json["tokens"]
    assert (old["revokedAt"], new["revokedAt"] is None) == (None, False)
    assert "`odf recipient rotate acme` gives a new token" in odf("recipient", "add", "acme").says
    assert odf("recipient", "rotate", "acme", "--overlap", "999999w").code == 2
    assert odf("recipient", "rotate", "acme", "--overlap", "0s").code == 0
    ended = [one["revokedAt"] is not None for one in odf("recipient", "show", "acme", "-o", "json").json["tokens"]]
    assert ended[:2] == [True, True]
    assert ended[-1] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("recipient", "add", "acme", "--attribute", "country"), "Not an attribute"),
        (("recipient", "add", "a b"), "Not a name of a recipient"),
        (("recipient", "add", "acme", "--expires", "soon"), "Not a duration"),
        (("recipient", "add", "acme", "--profile-version", "3"), "There is no version 3"),
        (("recipient", "show", "acne"), "There is no recipient 'acne'"),
        (("recipient", "rotate", "nobody"), "There is no user, recipient or group 'nobody'"),
        (("grant", "add", "nobody", "sales"), "There is no user, recipient or group"),
        (("grant", "add", "acme", "sale"), "There is no share 'sale'"),
        (("grant", "add", "acme", "sales.eu.files", "--columns", "idd"), "no column 'idd'"),
        (("grant", "add", "acme", "sales.eu.files", "--rows", "idd = 1"), "no column 'idd'"),
        (("grant", "add", "acme", "sales", "--rows", "now() > 1"), "A condition on rows has no NOW()"),
        (("grant", "remove", "7"), "There is no grant 7"),
        (("grant", "remove", "x"), "N"),
        (("share", "add", "sales.eu.orders"), "is a table, which needs one underlying dataset"),
        (("share", "add", "sales", "rates"), "is a share, which has no data of its own"),
        (("share", "add", "sales.eu.rates", "rates"), "No dataset 'rates'"),
        (("schema", "remove", "sales"), "is a share, not a schema"),
        (("group", "add", "partners", "--members", "nobody"), "There is no user, recipient or group 'nobody'"),
        (("share", "apply", "-f", "nosuch.yaml"), "Cannot read nosuch.yaml"),
    ],
)
def test_what_makes_no_sense_changes_nothing(
    odf: Odf, workspace: Path, arguments: tuple[str, ...], message: str
) -> None:
    (workspace / "files").mkdir()
    pq.write_table(ROWS, workspace / "files/a.parquet")
    odf("config", "set", "sharing.url", "https://data.example.com")
    odf("share", "add", "sales")
    odf("share", "add", "sales.eu.files", "--parquet", "files")
    if arguments[:2] != ("recipient", "add"):
        odf("recipient", "add", "acme")
    before = [
        odf(*command, "-o", "json").out
        for command in (("grant", "list"), ("recipient", "list"), ("share", "show", "sales"))
    ]
    outcome = odf(*arguments)
    assert outcome.code in (1, 2)
    assert message in outcome.says
    after = [
        odf(*command, "-o", "json").out
        for command in (("grant", "list"), ("recipient", "list"), ("share", "show", "sales"))
    ]
    assert after == before


def test_groups_and_grants(odf: Odf, workspace: Path) -> None:
    odf("config", "set", "sharing.url", "https://data.example.com")
    odf("share", "add", "sales")
    odf("recipient", "add", "acme")
    odf("user", "add", "ann")
    assert odf("group", "add", "partners", "--members", "acme,ann").code == 0
    assert odf("group", "list", "-o", "json").json == [{"name": "partners", "members": ["acme", "ann"]}]
    assert odf("grant", "add", "partners", "sales", "--columns", "a,b", "--rows", "a = 1").code == 0
    (grant,) = odf("grant", "list", "-o", "json").json
    assert (grant["principal"], grant["path"], grant["columns"], grant["rows"]) == (
        "partners",
        "sales",
        ["a", "b"],
        "a = 1",
    )
    assert odf("group", "remove", "partners", "--members", "ann").code == 0
    assert odf("recipient", "disable", "acme").err == "acme is disabled\n"
    assert odf("recipient", "list", "-o", "json").json[0]["disabled"] is True
    assert odf("grant", "remove", str(grant["number"])).err == f"grant {grant['number']} revoked\n"
    assert odf("grant", "list").err == "No grants; add one with `odf grant add NAME PATH`.\n"
    assert odf("group", "remove", "partners").code == 0
    assert odf("recipient", "remove", "acme").code == 0
    nothing = "No accesses are recorded; a running `odf serve` adds them within `sharing.auditInterval` seconds.\n"
    assert odf("audit").err == nothing


def test_a_file_declares_all_of_it(odf: Odf, workspace: Path) -> None:
    (workspace / "files").mkdir()
    pq.write_table(ROWS, workspace / "files/a.parquet")
    declared = (
        b"{kind: Shares, version: 1, shares: {sales: {tables: {eu.files: {parquet: files}}}},"
        b" recipients: {acme: }, grants: [{to: acme, path: sales}]}"
    )
    planned = odf("share", "apply", "-f", "-", "--dry-run", stdin=declared)
    assert planned.out.splitlines() == [
        "+ recipient acme", "+ share sales", "+ table sales.eu.files: parquet files", "+ grant: acme reads sales",
    ]  # fmt: skip
    assert planned.err == "4 changes; nothing was changed\n"
    one = odf("share", "apply", "-f", "-", "--dry-run", stdin=b"{kind: Shares, version: 1, recipients: {acme: }}")
    assert one.err == "1 change; nothing was changed\n"
    assert odf("share", "list", "-o", "json").json == []
    assert odf("share", "apply", "-f", "-", stdin=declared).out == planned.out
    assert odf("share", "apply", "-f", "-", "--prune", stdin=declared).out == ""
    assert len(odf("share", "show", "sales", "-o", "json").json) == 1


def test_grants_that_a_file_does_not_declare_are_told(odf: Odf, workspace: Path) -> None:
    (workspace / "files").mkdir()
    pq.write_table(ROWS, workspace / "files/a.parquet")
    declared = (
        "{kind: Shares, version: 1, shares: {sales: {tables: {eu.files: {parquet: files}}}},"
        " recipients: {acme: }, grants: [{to: acme, path: sales.eu.files%s}]}"
    )
    first = odf("share", "apply", "-f", "-", stdin=(declared % "").encode())
    assert "warning" not in first.err
    tighter = (declared % ", rows: 'id = 1'").encode()
    stays = (
        "warning: 1 grant that the file does not declare stays in force: grant: acme reads sales.eu.files."
        " --prune removes it\n"
    )
    for words in (["--dry-run"], [], []):
        told = odf("share", "apply", "-f", "-", *words, stdin=tighter)
        assert (told.code, stays in told.err) == (0, True), words
    assert "warning" not in odf("share", "apply", "-f", "-", "--prune", stdin=tighter).err
    assert [one["rows"] for one in odf("grant", "list", "-o", "json").json] == ["id = 1"]


def test_columns_of_grants_on_shares_have_to_be_in_a_table(odf: Odf, workspace: Path) -> None:
    for name, rows in {"a": ROWS, "b": pa.table({"total": [1]})}.items():
        (workspace / name).mkdir()
        pq.write_table(rows, workspace / name / "a.parquet")
    declared = (
        "{kind: Shares, version: 1, shares: {sales: {tables: {eu.a: {parquet: a}, eu.b: {parquet: b}}}},"
        " recipients: {acme: }, grants: [{to: acme, path: %s}]}"
    )

    def applied(grant: str, *words: str) -> Outcome:
        return odf("share", "apply", "-f", "-", *words, stdin=(declared % grant).encode())

    for words in (["--dry-run"], []):
        refused = applied("sales, rows: nosuch = 1", *words)
        assert refused.says.startswith("error: No table of sales has all columns that the condition names: nosuch = 1")
        assert (
            "has a column 'totl' (E100)\nhint: Did you mean total?" in applied("sales.eu, columns: [totl]", *words).says
        )
        assert "No table of sales.eu has all columns" in applied("sales.eu, rows: id = total", *words).says
    assert odf("share", "list", "-o", "json").json == []
    told = applied("sales, rows: id = 1")
    assert (told.code, told.err) == (
        0,
        "warning: The grant shows nothing of sales.eu.b: it lacks columns that the grant names\n",
    )
    assert "(E761)" in odf("grant", "add", "acme", "sales", "--rows", "nosuch = 1").says
    assert "no column 'nosuch'" in odf("grant", "add", "acme", "sales.eu.a", "--rows", "nosuch = 1").says
    told = odf("grant", "add", "acme", "sales.eu", "--columns", "total")
    assert (told.code, "shows nothing of sales.eu.a:" in told.err) == (0, True)
    assert "warning" not in odf("grant", "add", "acme", "sales", "--columns", "total,id").err
    assert len(odf("grant", "list", "-o", "json").json) == 3


# --- Passwords -------------------------------------------------------------------------------------------------------

PASSWORD = "correct horse battery"


def with_ann(odf: Odf) -> None:
    assert odf("user", "add", "ann", "--url", "https://data.example.com", "--to", "-").code == 0


def test_a_password_is_read_from_standard_input(odf: Odf, workspace: Path) -> None:
    with_ann(odf)
    assert odf("user", "show", "ann", "-o", "json").json["password"] is False
    done = odf("user", "password", "ann", "--stdin", stdin=f"{PASSWORD}\r\nmore\n".encode())
    assert done.code == 0
    assert PASSWORD not in done.out + done.err
    sharing = Sharing.of_workspace(workspace / ".odf", None)
    assert sharing.passwords.check("ann", PASSWORD) is not None
    assert odf("user", "show", "ann", "-o", "json").json["password"] is True
    assert odf("user", "password", "ann", "--remove").code == 0
    assert sharing.passwords.check("ann", PASSWORD) is None
    sharing.database.close()


@pytest.mark.parametrize(
    ("words", "stdin", "says"),
    [
        (("ann", "--stdin"), b"", "No password in standard input"),
        (("ann", "--stdin"), b"\xff\xff\xff\xff\xff\xff\xff\xff", "is not text"),
        (("ann", "--stdin"), b"short\n", "8 to 1000 characters"),
        (("ann", "--stdin", "--remove"), b"", "cannot be combined"),
        (("ann",), PASSWORD.encode(), "--stdin reads it"),
        (("nobody", "--stdin"), PASSWORD.encode(), "There is no user 'nobody'"),
        (("ann", PASSWORD), b"", "Got unexpected extra argument"),
    ],
)
def test_wrong_input_for_passwords(words: tuple[str, ...], stdin: bytes, says: str, odf: Odf, workspace: Path) -> None:
    del workspace
    with_ann(odf)
    done = odf("user", "password", *words, stdin=stdin)
    assert done.code in (1, 2)
    assert says in done.says
    assert odf("user", "show", "ann", "-o", "json").json["password"] is False


def test_a_password_is_typed_twice(odf: Odf, workspace: Path) -> None:
    with_ann(odf)
    for second, code in (("something else", 2), (PASSWORD, 0)):
        with terminal("user", "password", "ann", cwd=workspace, NO_COLOR="1") as screen:
            screen.wait_for("New password for ann: ")
            screen.type(f"{PASSWORD}\n")
            screen.wait_for("Repeat it: ")
            screen.type(f"{second}\n")
            assert screen.wait() == code
            assert PASSWORD not in screen.plain
    sharing = Sharing.of_workspace(workspace / ".odf", None)
    assert sharing.passwords.check("ann", PASSWORD) is not None
    sharing.database.close()


def test_admins_are_named(odf: Odf, workspace: Path) -> None:
    del workspace
    with_ann(odf)
    assert odf("user", "admin", "ann", "on").code == 0
    assert odf("user", "show", "ann", "-o", "json").json["admin"] is True
    assert odf("user", "admin", "ann", "off").code == 0
    assert odf("user", "show", "ann", "-o", "json").json["admin"] is False
    assert "Must be on or off" in odf("user", "admin", "ann", "maybe").says
    assert odf("user", "admin", "nobody", "on").code == 1


def test_a_login_with_a_password(odf: Odf, workspace: Path) -> None:
    with_ann(odf)
    odf("user", "password", "ann", "--stdin", stdin=PASSWORD.encode())
    with serving(Workspace.open(workspace)) as server:
        refused = odf("login", server.url, "--user", "ann", stdin=b"wrong\n")
        assert refused.code == 1
        assert "does not accept this name and password" in refused.says
        done = odf("login", server.url, "--user", "ann", stdin=f"{PASSWORD}\n".encode())
        assert done.code == 0, done.says
        assert "as ann with the scope read" in done.err
        token = Credentials().get(server_of(server.url))
        assert ask(f"{server.url}/token", token=token).json["name"] == "ann"
        assert "cannot be combined" in odf("login", server.url, "--user", "ann", "--token", "x").says
        assert odf("login", server.url, "--user", "ann", stdin=b"").code == 2
        odf("user", "password", "ann", "--remove")
        assert ask(f"{server.url}/token", token=token).status == 401
    assert odf("logout", "--all").code == 0


def test_a_login_where_there_are_none(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    del workspace
    with static_server(tmp_path) as site:
        refused = odf("login", site.url, "--user", "ann", stdin=b"any password\n")
    assert refused.code == 1
    assert "has no logins with a password" in refused.says
