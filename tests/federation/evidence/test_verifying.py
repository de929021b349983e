"""Verifying kept answers: whatever was changed, left out or put in is found, whoever has done it."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jwt
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.federation.kept import Forger, attachment, changed, signature
from support.federation.served import ServedWeb, credentials

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import UsageError
from odfpy.federation.authority import Authority, Issued
from odfpy.federation.errors import AuthenticationFailed
from odfpy.federation.evidence import verifying
from odfpy.federation.evidence.record import SignedRecord
from odfpy.federation.evidence.verifying import verify
from odfpy.federation.relay import requesters
from odfpy.federation.relay.requesters import Authorities, Credentials

SUMS = "SELECT flag, count(*) AS n, sum(price) AS s FROM item GROUP BY flag"
JOIN = "SELECT a.id, b.flag FROM item AS a JOIN item AS b ON a.id = b.id WHERE a.price > 8 AND b.flag = 'R'"
Record = dict[str, Any]


@pytest.fixture(scope="module")
def kept(web: ServedWeb, ann: Issued, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace.init(tmp_path_factory.mktemp("kept") / "w")
    asked = web.asks(ann, "na")
    for name, query in {"sums": SUMS, "again": SUMS, "join": JOIN}.items():
        assert asked.sql_into(query, workspace, name).holds
    return workspace


@pytest.fixture(scope="module")
def own(ann: Issued) -> Credentials:
    return credentials(ann)


@pytest.fixture(scope="module")
def sums(kept: Workspace, own: Credentials) -> Forger:
    return Forger(kept, "sums", own, int(time.time()))


@pytest.fixture(scope="module")
def join(kept: Workspace, own: Credentials) -> Forger:
    return Forger(kept, "join", own, int(time.time()))


def findings(forger: Forger, name: str, trusted: Authorities) -> str:
    return "; ".join(verify(forger.workspace, name, trusted).findings)


def test_what_is_told_of_an_answer(web: ServedWeb, ann: Issued, kept: Workspace, trusted: Authorities) -> None:
    found = verify(kept, "sums", trusted)
    assert found.holds
    assert (found.sql, found.rows, found.missing) == (SUMS, 2, ())
    assert (found.requester, found.subject) == (ann.facts.fingerprint, "CN=ann")
    signed = {one.relay: one for one in found.signed}
    assert set(signed) == {"na", "global"}
    for name, one in signed.items():
        assert (one.subject, one.rows, one.fragment) == (f"CN={name}", 2, "f1")
        assert one.fingerprint == web.relays[name].identity.fingerprint
    assert '"percent" / 100.0' in signed["global"].sql


def test_a_copy_without_changes_holds(sums: Forger, join: Forger, trusted: Authorities) -> None:
    for forger in (sums, join):
        assert findings(forger, forger.forge(), trusted) == ""


# --- Rows ---


def test_rows_of_the_answer_that_do_not_follow_from_the_parts(sums: Forger, trusted: Authorities) -> None:
    for rows in (changed("n", 7), lambda table: table.slice(1), lambda table: pa.concat_tables([table, table])):
        assert "which are not the 2 that the query gives" in findings(sums, sums.forge(rows=rows), trusted)


def test_a_column_that_nobody_asked_for(sums: Forger, trusted: Authorities) -> None:
    name = sums.forge(rows=lambda table: table.append_column("extra", pa.array([1] * len(table))))
    assert "has the columns flag, n, s, extra" in findings(sums, name, trusted)


def test_a_recorded_answer_that_does_not_follow_from_the_parts(sums: Forger, trusted: Authorities) -> None:
    name = sums.forge(lambda record: record["answer"].update(rows=3))
    assert "does not give the rows that were recorded" in findings(sums, name, trusted)


def test_rows_of_parts_that_no_relay_has_signed(sums: Forger, trusted: Authorities) -> None:
    found = findings(sums, sums.forge(parts=changed("c1", 100)), trusted)
    assert found == "part 0 (f1): there are 2 rows, which are not the 2 that na has signed"
    for change in (lambda table: table.slice(1), lambda table: pa.concat_tables([table.slice(0, 1), table])):
        assert "which are not the 2 that na has signed" in findings(sums, sums.forge(parts=change), trusted)
    assert "rows of a part 9" in findings(sums, sums.forge(parts=changed("part", 9)), trusted)
    assert "rows of a part None" in findings(sums, sums.forge(parts=changed("part", None)), trusted)


def test_a_dropped_part(sums: Forger, trusted: Authorities) -> None:
    name = sums.forge(lambda record: record["parts"].pop())
    assert "rows of a part 1 that no relay has signed" in findings(sums, name, trusted)

    def without(table: pa.Table) -> pa.Table:
        return table.filter(pa.compute.equal(table["part"], 0))

    name = sums.forge(lambda record: record["parts"].pop(), parts=without)
    assert "does not give the rows that were recorded" in findings(sums, name, trusted)


def test_a_part_that_is_counted_twice(sums: Forger, trusted: Authorities) -> None:
    def twice(table: pa.Table) -> pa.Table:
        first = table.filter(pa.compute.equal(table["part"], 0))
        return pa.concat_tables([table, first.set_column(0, "part", pa.array([2] * len(first)))])

    name = sums.forge(lambda record: record["parts"].append(record["parts"][0]), parts=twice)
    assert "na has signed these rows once, but they occur twice" in findings(sums, name, trusted)


def test_rows_that_were_corrected_or_added_later(web: ServedWeb, ann: Issued, tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "w")
    web.asks(ann, "na").sql_into("SELECT id FROM item", workspace, "answer")
    file = tmp_path / "more.parquet"
    pa.parquet.write_table(pa.table({"id": [4]}), file)
    list(workspace.ingest("answer", [file]))
    found = verify(workspace, "answer", Authorities(web.issued.facts.pem.encode()))
    assert "the dataset has 6 rows, which are not the 5" in found.findings[0]


# --- Statements ---


def test_statements_that_were_swapped_between_parts(sums: Forger, trusted: Authorities) -> None:
    found = findings(sums, sums.forge(lambda record: record["parts"].reverse()), trusted)
    assert found.count("has signed") == 2


def test_a_statement_about_another_fragment(join: Forger, trusted: Authorities) -> None:
    def swap(record: Record) -> None:
        one, other = (next(part for part in record["parts"] if part["fragment"] == name) for name in ("f1", "f2"))
        one["statement"], other["statement"] = other["statement"], one["statement"]

    assert findings(join, join.forge(swap), trusted).count("signed another query") == 2


def test_a_statement_about_a_fragment_that_the_query_lacks(sums: Forger, web: ServedWeb, trusted: Authorities) -> None:
    statement = sums.record["parts"][0]["statement"]
    claims = jwt.decode(statement, options={"verify_signature": False})
    identity = web.relays["na"].identity
    true = Credentials.load(identity.certificate, identity.key).signed(
        {**claims, "question": claims["question"].replace("f1", "f9")}
    )
    for text in (statement, true):
        name = sums.forge(
            lambda record, text=text: record["parts"].append({"fragment": "f9", "statement": text}),
        )
        assert "another query than f9" in findings(sums, name, trusted)


def test_a_statement_about_the_same_query_asked_another_time(sums: Forger, trusted: Authorities) -> None:
    other = attachment(sums.workspace, "again")["record"]["parts"]
    name = sums.forge(lambda record: record.update(parts=other))
    assert "another query than f1 of this query" in findings(sums, name, trusted)


def test_a_record_of_somebody_else(sums: Forger, web: ServedWeb, trusted: Authorities) -> None:
    bob = credentials(web.user("bob"))
    name = sums.forge(lambda record: record.update(requester=bob.fingerprint), by=bob)
    assert "for another requester" in findings(sums, name, trusted)
    name = sums.forge(lambda record: record.update(software="x"), by=bob)
    assert "not signed by the requester" in findings(sums, name, trusted)


def test_statements_of_a_user_and_of_a_stranger(
    sums: Forger, web: ServedWeb, ann: Issued, trusted: Authorities
) -> None:
    claims = jwt.decode(sums.record["parts"][0]["statement"], options={"verify_signature": False})
    stranger, _ = Authority.new("others")
    relay = credentials(stranger.issue("na", 30, hosts=["localhost"]))
    for forged, why in (
        (credentials(ann).signed(claims), "not signed by a relay"),
        (relay.signed(claims), "not of a trusted authority"),
        ("nonsense", "is not valid"),
    ):
        name = sums.forge(lambda record, text=forged: record["parts"][0].update(statement=text))
        assert why in findings(sums, name, trusted)


def test_another_authority_believes_nothing(sums: Forger) -> None:
    _, other = Authority.new("others")
    found = verify(sums.workspace, "sums", Authorities(other.facts.pem.encode()))
    assert len(found.findings) == 3
    assert all("not of a trusted authority" in one for one in found.findings)
    assert (found.signed, found.subject, found.at) == ((), None, None)


def test_certificates_that_have_ended_since_do_not_matter(
    sums: Forger, trusted: Authorities, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time() + 1_000 * 24 * 3600
    monkeypatch.setattr(requesters, "time", SimpleNamespace(time=lambda: later))
    assert verify(sums.workspace, "sums", trusted).holds


def test_what_was_signed_before_the_certificate_was_good(
    kept: Workspace, own: Credentials, trusted: Authorities
) -> None:
    early = Forger(kept, "sums", own, 1_500_000_000)
    name = early.forge(lambda record: record.update(software="x"))
    assert "record: The certificate of the caller is not of a trusted authority" in findings(early, name, trusted)


# --- The question ---


@pytest.mark.parametrize("sql", [SUMS.replace("sum", "max"), SUMS + " HAVING count(*) > 1", SUMS + " "])
def test_another_question_than_the_one_that_was_asked(sql: str, sums: Forger, trusted: Authorities) -> None:
    from odfpy.federation.execution.plan import WebPlan, planned

    plan = WebPlan.parse(sums.record["plan"])
    again = planned(sql, plan.entities, plan.nonce)
    name = sums.forge(lambda record: record.update(plan=again.to_json(), query=again.query))
    assert findings(sums, name, trusted).count("another query") == 2  # though all of it goes together


def test_a_rest_or_fragments_that_do_not_follow_from_the_sql(sums: Forger, trusted: Authorities) -> None:
    for key, value in (("rest", 'SELECT 1 AS "flag", 2 AS "n", 3 AS "s"'), ("sql", "SELECT 1 AS one")):
        name = sums.forge(lambda record, key=key, value=value: _put(record, key, value))
        assert "SQL: the fragments do not follow from the query" in findings(sums, name, trusted)


def _put(record: Record, key: str, value: str) -> None:
    from odfpy.federation.execution.plan import WebPlan

    record["plan"][key] = value
    record["query"] = WebPlan.parse(record["plan"]).query


def test_what_is_no_answer(kept: Workspace, sums: Forger, trusted: Authorities) -> None:
    with pytest.raises(UsageError, match="is not an answer of a web"):
        verify(kept, "sums.parts.1", trusted)
    name = sums.forge(lambda record: record.update(version=2))
    assert "not have the form of version 1" in findings(sums, name, trusted)
    name = sums.forge(lambda record: record["datasets"].clear())
    assert "the datasets are not those of the fragments" in findings(sums, name, trusted)


# --- Any change ---

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5), st.just([]), st.just({}))


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [path, *(one for key, value in inner for one in places(value, (*path, key)))]


def mutated(data: st.DataObject, tree: Any) -> Any:
    """The tree with one change: a value, something that is gone, or something that occurs twice."""
    found = copy.deepcopy(tree)
    *way, last = data.draw(st.sampled_from(places(tree)[1:]))
    at = found
    for key in way:
        at = at[key]
    how = data.draw(st.sampled_from(["value", "gone", "twice"]))
    if how == "gone":
        del at[last]
    elif how == "twice" and isinstance(at, list):
        at.append(at[last])
    else:
        at[last] = data.draw(LEAVES)
    assume(json.dumps(found) != json.dumps(tree))
    return found


@given(data=st.data())
@settings(max_examples=60)
def test_no_change_of_a_record_goes_unseen(data: st.DataObject, sums: Forger, trusted: Authorities) -> None:
    tree = attachment(sums.workspace, "sums")
    with pytest.raises(AuthenticationFailed):
        SignedRecord.parse(json.dumps(mutated(data, tree))).signer(trusted)


@given(data=st.data())
@settings(max_examples=8)
def test_who_has_asked_cannot_change_what_relays_have_signed(
    data: st.DataObject, join: Forger, trusted: Authorities, own: Credentials
) -> None:
    record = mutated(data, join.record)
    tree = {"record": record, "signature": ""}
    try:
        parsed = SignedRecord.parse(json.dumps(tree)).record
    except AuthenticationFailed:
        return
    tree["signature"] = signature(record, own, int(time.time()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verifying, "_attachment", lambda *_: json.dumps(tree))
        found = verify(join.workspace, "join", trusted)
    original = SignedRecord.parse(json.dumps(attachment(join.workspace, "join"))).record
    same = (parsed.plan, parsed.parts, parsed.requester, parsed.rows, parsed.hash) == (
        (original.plan, original.parts, original.requester, original.rows, original.hash)
    )
    assert same or not found.holds
