"""Texts that take parsers and planners minutes, or break them: each is refused in plain words, and soon."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import Answer, ask, serving

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.data.sql_text import OWN, TextLimits, check_text
from odfpy.errors import OdfError, QueryTooDeep, QueryTooLong
from odfpy.query.plan import plan
from odfpy.query.query import Query
from odfpy.query.wire.reproducible import depends_on_more
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"
FROM = f' from "{NAME}"'
SECONDS = 1.0
"""Of processor time, too: the process of a text that takes long is busy until its time is up."""


def _chain(levels: int) -> str:
    return "".join(f", a{level} as (select * from a{level - 1})" for level in range(1, levels))


# Of each, a text that nests some levels.
NESTING = {
    "plus": lambda n: "select 1" + "+1" * n,
    "or": lambda n: "select id = 1" + " or id = 1" * n + FROM,
    "and": lambda n: "select * " + FROM + " where id = 1" + " and id = 1" * n,
    "concat": lambda n: "select 'a'" + "||'a'" * n,
    "not": lambda n: "select " + "not " * n + "true",
    "minus": lambda n: "select " + "- " * n + "1",
    "tilde": lambda n: "select " + "~ " * n + "1",
    "parentheses": lambda n: "select " + "(" * n + "1" + ")" * n,
    "only opened": lambda n: "select " + "(" * n,
    "only closed": lambda n: "select 1" + ")" * n,
    "brackets": lambda n: "select " + "[" * n + "1" + "]" * n,
    "braces": lambda n: "select " + "{'a': " * n + "1" + "}" * n,
    "subscripts": lambda n: "select [1]" + "[1]" * n,
    "case": lambda n: "select " + "case when true then " * n + "1" + " end" * n,
    "else": lambda n: "select " + "case when true then 1 else " * n + "1" + " end" * n,
    "calls": lambda n: "select " + "abs(" * n + "1" + ")" * n,
    "casts": lambda n: "select " + "cast(" * n + "1" + " as int)" * n,
    "colons": lambda n: "select 1" + "::int" * n,
    "arrows": lambda n: "select '{}'" + "->'a'" * n,
    "dots": lambda n: "select a" + ".a" * n + FROM,
    "subqueries": lambda n: "select * from (" * n + "select 1" + ") x" * n,
    "scalars": lambda n: "select " + "(select " * n + "1" + ")" * n,
    "exists": lambda n: "select " + "exists(select " * n + "1" + ")" * n,
    "in": lambda n: "select " + "1 in (" * n + "1" + ")" * n,
    "between": lambda n: "select 1" + " between 1 and 1" * n,
    "like": lambda n: "select 'a'" + " like 'a'" * n,
    "is null": lambda n: "select 1" + " is null" * n,
    "unions": lambda n: "select 1" + " union all select 1" * n,
    "excepts": lambda n: "select 1" + " except select 1" * n,
    "joins": lambda n: f"select 1{FROM} as a0" + "".join(f' join "{NAME}" as a{i} on true' for i in range(1, n)),
    "with": lambda n: f"with a0 as (select 1){_chain(n)} select * from a{n - 1}",
    "nested with": lambda n: "with a as (" * n + "select 1" + ") select * from a" * n,
    "values": lambda n: "select * from (values " + "(" * n + "1" + ")" * n + ")",
    "arrays of arrays": lambda n: "select cast(null as " + "array<" * n + "int" + ">" * n + ")",
    "intervals": lambda n: "select " + "interval " * n + "'1 day'",
    "windows": lambda n: "select " + "sum(1) over (order by " * n + "1" + ")" * n,
    "lambdas": lambda n: "select f(" + "x -> " * n + "x)",
    "projections": lambda n: "select * from " + "odf_current(" * n + f"'{NAME}'" + ")" * n,
    "quotes": lambda n: "select " + "'" * n,
    "comments": lambda n: "select " + "/*" * n + " 1",
    "semicolons": lambda n: "select 1" + ";" * n,
}
OF_A_STRANGER, OF_ONES_OWN = (60, 900), (300, 2500)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = workspace_with(tmp_path_factory.mktemp("workspace"), root(NAME, "{kind: Append}"))
    feed(found, NAME, "1 a", "2 b")
    set_visibility(found.storage.get(NAME).folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with pytest.MonkeyPatch.context() as patch, serving(workspace, query_timeout=SECONDS) as server:
        patch.setenv("XDG_CONFIG_HOME", str(workspace.storage.root / "config"))
        yield server


def asked(server: DatasetServer, text: str) -> Answer:
    body = json.dumps({"query": text}).encode()
    return ask(f"{server.url}/query", method="POST", body=body, content_type="application/json")


@pytest.mark.parametrize("name", NESTING)
def test_what_nests_deeply_is_answered_or_refused_in_plain_words(server: DatasetServer, name: str) -> None:
    for levels in OF_A_STRANGER:
        answer = asked(server, NESTING[name](levels))
        # DataFusion plans some, such as casts in each other, for minutes: their process ends with their time.
        assert answer.status in (200, 400, 503), (levels, answer)
        assert answer.status != 503 or f"took longer than {SECONDS:g} s" in answer.json["message"]
        if answer.status != 200:
            message = answer.json["message"]
            assert message
            assert "ecursionError" not in message
            assert len(message) < 5_000


@pytest.mark.slow_after(20)
@pytest.mark.parametrize("dialect", ["spark", "datafusion"])
@pytest.mark.parametrize("name", NESTING)
def test_planning_knows_no_other_errors(workspace: Workspace, name: str, dialect: str) -> None:
    for levels in OF_ONES_OWN:
        try:
            found = plan(workspace.query_service.resolver, Query(NESTING[name](levels), dialect))
            depends_on_more(found)
            assert found.path
        except OdfError as error:
            assert error.code != "E999"  # noqa: PT017


def test_a_text_of_strangers_is_limited_before_anybody_reads_it(server: DatasetServer) -> None:
    started = time.monotonic()
    for text, said in (
        ("select " + "id or " * 12_000 + "id" + FROM, "characters"),
        ("select " + "1," * 11_000 + "1", "words and signs"),
        ("select " + "1+" * 2_000 + "1", "1,000 deep"),
    ):
        answer = asked(server, text)
        assert (answer.status, said in answer.json["message"]) == (400, True)
    assert time.monotonic() - started < 60


def test_the_largest_text_of_a_stranger_does_not_hold_the_server(server: DatasetServer) -> None:
    """What is within the limits and takes longest to read, from several callers at once; `/health` answers meanwhile."""
    texts = [NESTING[name](990) for name in ("plus", "subqueries", "unions", "and")]
    texts += ["select " + "1," * 9_990 + "1", "select 1" + "[1]" * 99]

    def ask_it(text: str) -> None:
        with suppress(OSError):  # whatever becomes of it, and however long it takes on a busy machine
            asked(server, text)

    asking = [threading.Thread(target=ask_it, args=(one,)) for one in texts]
    for thread in asking:
        thread.start()
    while any(thread.is_alive() for thread in asking):
        assert ask(f"{server.url}/health").status == 200


# --- The limits themselves -------------------------------------------------------------------------------------------

SMALL = TextLimits(characters=1000, tokens=50, depth=5)


@pytest.mark.parametrize(
    "text",
    [
        "select a, b, c, d, e, f, g, h from t where a in (1, 2, 3, 4, 5, 6, 7, 8, 9)",
        "select '((((((((((' as a, \"++++++++++\" /* ((((((((( */ -- +++++++++++\n from t",
        "select a + b, c + d, e + f, g + h, i + j from t",
        "select (((a))) + 1",
        "select case when a then 1 when b then 2 when c then 3 when d then 4 else 5 end",
        "select 1.5, 2.5e3, a.b.c.d.e.f.g",
    ],
)
def test_what_is_beside_each_other_is_not_deep(text: str) -> None:
    check_text(text, SMALL)


@pytest.mark.parametrize(
    "text",
    [
        "select a + b + c + d + e + f + g",
        "select ((((((a))))))",
        "select ((a + b) + c) + (d + e) + f + g",
        "select not not not not not not a",
        "select a from (select b from (select c from (select d from (select e from (select f from (select g))))))",
        "select 1 union select 2 union select 3 union select 4 union select 5 union select 6 union select 7",
        "select ((((((",
        "select a[1][2]",
    ],
)
def test_what_is_in_each_other_or_in_a_row_is(text: str) -> None:
    with pytest.raises(QueryTooDeep):
        check_text(text, SMALL)


def test_long_texts_are_refused_at_once() -> None:
    with pytest.raises(QueryTooLong, match="characters"):
        check_text("a" * 1001, SMALL)
    with pytest.raises(QueryTooLong, match="more than 50 words"):
        check_text("a " * 51, SMALL)


@pytest.mark.parametrize("sign", ["'", '"', "`", "(", "/*", "-", "--", "$", "\\", "a", "1", "'\\", "case ", "[", "; "])
def test_reading_takes_a_time_that_grows_with_the_length(sign: str) -> None:
    text = sign * (OWN.characters // len(sign))
    started = time.process_time()
    with suppress(OdfError):
        check_text(text)
    assert time.process_time() - started < 10


def test_a_query_in_a_manifest_is_limited_too(tmp_path: Path) -> None:
    text = "select op, event_time, id from source where id > 0" + " + 0" * 11_000
    found = workspace_with(tmp_path, root(NAME, "{kind: Append}"))
    feed(found, NAME, "1 a")
    with pytest.raises(QueryTooDeep):
        found.add(load_snapshots(derivative("deep", NAME, text), "manifest"))
