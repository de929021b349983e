"""Whatever is asked of shares: an answer or an error of the protocol, and never an error of ours."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from serving.sharing.conftest import Shared
from serving.sharing.test_delta_sharing import LOG, RATES
from support.examples import examples
from support.servers.serving import Answer

EXAMPLES = settings(
    max_examples=examples(10, 40),
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
KNOWN = {"share": "fx", "schema": "main", "table": "rates"}
CODES = {
    "INVALID_PARAMETER_VALUE", "UNAUTHENTICATED", "PERMISSION_DENIED", "RESOURCE_DOES_NOT_EXIST",
    "UNSUPPORTED_OPERATION", "REQUEST_TOO_LARGE", "REQUEST_LIMIT_EXCEEDED",
}  # fmt: skip

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
NUMBERS = st.integers() | st.floats() | st.sampled_from([0, 1, 3, 4, -1, 2**31, 2**63 - 1, 2**63, 10**400, True])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=10,
)
TIMES = TEXTS | st.datetimes().map(lambda time: f"{time.isoformat()}Z") | st.sampled_from(
    ["0001-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2024-02-30T00:00:00Z", "-9999999999", "2024-01-01", "1e999"]
)  # fmt: skip
COLUMNS = st.sampled_from(["cur", "rate", "n", "t", "day", "op", "offset", "nosuch", ""]) | TEXTS
VALUES = TEXTS | st.sampled_from(["1", "NaN", "1e999", "-1", "2024-13-01", "true", "9" * 5000]) | NUMBERS | st.none()
NODES = st.recursive(
    st.builds(lambda name, kind: {"op": "column", "name": name, "valueType": kind}, COLUMNS, TEXTS)
    | st.builds(lambda value: {"op": "literal", "value": value, "valueType": "int"}, VALUES)
    | JSON,
    lambda inner: st.builds(
        lambda kind, children: {"op": kind, "children": children},
        st.sampled_from(["and", "or", "not", "isNull", "equal", "lessThan", "greaterThanOrEqual", "in", ""]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)
SQL = TEXTS | st.builds(
    lambda column, operator, value: f"{column} {operator} {value}",
    COLUMNS,
    st.sampled_from(["=", "<", "<>", "IS", "IN", "LIKE", "AND", "BETWEEN", "::", "--", ";"]),
    VALUES,
)


def is_of_the_protocol(answer: Answer) -> None:
    """Check that an answer is one, or an error as the protocol has them."""
    assert answer.status < 500, answer.body
    if answer.status >= 400:
        assert set(answer.json) == {"errorCode", "message"}, answer.body
        assert answer.json["errorCode"] in CODES
        assert "Traceback" not in answer.json["message"]
        assert answer.headers["content-type"].startswith("application/json")


@pytest.mark.parametrize("is_known", [False, True])
def test_every_operation_answers_what_it_is_asked(shared: Shared, is_known: bool) -> None:
    import schemathesis

    schema = schemathesis.openapi.from_dict(shared.app.openapi())
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()

        @EXAMPLES
        @given(case=operation.as_strategy())
        def asked(case: Any) -> None:
            if is_known:
                case.path_parameters.update({name: KNOWN[name] for name in case.path_parameters if name in KNOWN})
            shared.forget_guesses()
            told = {"Authorization": f"Bearer {shared.tokens['all']}"}
            answer = case.call(base_url=shared.url, headers=told, timeout=30)
            assert answer.status_code < 500, answer.text
            if case.method.upper() != "HEAD":  # it has no body
                headers = {name.lower(): values[0] for name, values in answer.headers.items()}
                is_of_the_protocol(Answer(answer.status_code, headers, answer.content))

        asked()
        tried.add((operation.method.upper(), operation.path))
    assert len(tried) >= 13


QUERY_FIELDS = {
    "predicateHints": st.lists(SQL, max_size=3) | JSON,
    "jsonPredicateHints": NODES.map(json.dumps) | TEXTS | JSON,
    "limitHint": NUMBERS | JSON,
    "version": st.integers(-1, 4) | JSON,
    "timestamp": TIMES | JSON,
    "startingVersion": st.integers(-1, 4) | JSON,
    "endingVersion": st.integers(-1, 4) | JSON,
    "maxFiles": st.integers(0, 3) | JSON,
    "pageToken": TEXTS | JSON,
    "includeRefreshToken": st.booleans() | JSON,
    "refreshToken": TEXTS | JSON,
    "idempotencyKey": TEXTS | JSON,
    "includeHistoricalProtocol": st.booleans() | JSON,
}


@pytest.mark.parametrize("who", ["all", "eur"])
@pytest.mark.parametrize("table", [RATES, LOG])
def test_every_body_is_answered(shared: Shared, table: str, who: str) -> None:
    @settings(EXAMPLES, max_examples=examples(30, 100))
    @given(st.fixed_dictionaries({}, optional=QUERY_FIELDS))
    def asked(body: dict[str, Any]) -> None:
        is_of_the_protocol(shared.ask(f"{table}/query", who, body))

    asked()


@given(node=NODES, sql=st.lists(SQL, max_size=3))
@settings(EXAMPLES, max_examples=examples(30, 100))
def test_hints_never_fail_a_question(shared: Shared, node: Any, sql: list[str]) -> None:
    body = {"predicateHints": sql, "jsonPredicateHints": json.dumps(node)}
    assert shared.ask(f"{LOG}/query", body=body).status == 200


@given(text=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=200))
@settings(EXAMPLES, max_examples=examples(30, 100))
@pytest.mark.parametrize("header", ["delta_sharing_capabilities", "fileidhash", "authorization", "range"])
def test_headers_are_answered(shared: Shared, header: str, text: str) -> None:
    shared.forget_guesses()
    who = None if header == "authorization" else "all"
    is_of_the_protocol(shared.ask(f"{RATES}/query", who, {}, **{header: text}))


@given(
    parts=st.dictionaries(
        st.sampled_from(["responseformat", "readerfeatures", "includeendstreamaction", "ASYNCQUERY", "x", ""]),
        st.lists(st.sampled_from(["parquet", "delta", "DELTA", "true", "false", "", "=", "deletionvectors"])),
    )
)
@settings(EXAMPLES, max_examples=examples(20, 60))
def test_capabilities_are_echoed_or_refused(shared: Shared, parts: dict[str, list[str]]) -> None:
    text = ";".join(f"{name}={','.join(values)}" for name, values in parts.items() if name.lower() != "asyncquery")
    answer = shared.ask(f"{RATES}/query", body={}, delta_sharing_capabilities=text)
    is_of_the_protocol(answer)
    if answer.status == 200:
        form = answer.headers["delta-sharing-capabilities"].split(";")[0]
        asked = {value.lower() for value in parts.get("responseformat", [])} & {"parquet", "delta"}
        assert form.removeprefix("responseformat=") in (asked or {"parquet"})


@given(
    at=st.integers(0, 400),
    more=st.sampled_from(["", "A", "=", "%", "-", "\0", "é"]),
    what=st.sampled_from(["pageToken", "refreshToken"]),
)
@settings(EXAMPLES, max_examples=examples(20, 60))
def test_tokens_that_were_changed_are_none(shared: Shared, at: int, more: str, what: str) -> None:
    asked = {"maxFiles": 1} if what == "pageToken" else {"includeRefreshToken": True}
    end = shared.lines(f"{LOG}/query", body=asked)[-1]["endStreamAction"]
    token = end["nextPageToken" if what == "pageToken" else "refreshToken"]
    at = min(at, len(token) - 1)
    changed = token[:at] + (more if more != token[at] else "_-"[more == "_"]) + token[at + 1 :]
    answer = shared.ask(f"{LOG}/query", body={"maxFiles": 1, what: changed})
    if at < len(token) - 1:  # bits of the last one are left over
        assert (answer.status, answer.json["errorCode"]) == (400, "INVALID_PARAMETER_VALUE")
    is_of_the_protocol(answer)


@given(time=TIMES, name=st.sampled_from(["timestamp", "startingTimestamp", "endingTimestamp"]))
@settings(EXAMPLES, max_examples=examples(20, 60))
def test_times_are_answered(shared: Shared, time: str, name: str) -> None:
    for call in ("version", "metadata", "changes"):
        for more in ("", "&startingVersion=0"):
            is_of_the_protocol(shared.ask(f"{RATES}/{call}?{name}={quote(time, safe='')}{more}"))


@given(names=st.lists(TEXTS | st.sampled_from(["fx", "main", "rates", "..", ".", "%", "%2f", "\0", "\n"]), max_size=4))
@settings(EXAMPLES, max_examples=examples(20, 60))
def test_names_are_answered(shared: Shared, names: list[str]) -> None:
    path = "/".join(
        f"{what}/{quote(name, safe='')}"
        for what, name in zip(("shares", "schemas", "tables", "x"), names, strict=False)
    )
    for more in ("", "/schemas", "/version", "/query"):
        is_of_the_protocol(shared.ask(f"{path}{more}" or "shares"))


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"null", b"1", b'"x"', b"{}" * 2, b"\0",
        b'{"version":' + b"9" * 100_000 + b"}", b'{"version":1e400}', b'{"version":NaN}', b'{"limitHint":"\\ud800"}',
        json.dumps({"predicateHints": ["(" * 5_000]}).encode(),
        json.dumps({"jsonPredicateHints": '{"op":"not","children":[' * 5_000}).encode(),
        json.dumps({"predicateHints": ["x"] * 100_000}).encode(),
        b" " * 2_000_000,
    ],
    ids=range(16),
)  # fmt: skip
def test_bodies_that_are_hostile(shared: Shared, body: bytes) -> None:
    is_of_the_protocol(shared.ask(f"{RATES}/query", body=body))
