"""What Spark's options say, without Spark: access, and the fragments that they become."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from odfpy.errors import InvalidQuery, InvalidValue, OdfError, UnsupportedQuery, UsageError
from odfpy.federation.authority import Authority
from odfpy.federation.errors import InvalidCertificate, WebObjectNotFound
from odfpy.federation.spark.access import Access
from odfpy.federation.spark.fragments import fragment_of, picked
from odfpy.federation.spark.options import WebOptions
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.fragment import explained

ENTITIES = {
    "item": pa.schema({"id": pa.int64(), "price": pa.float64(), "flag": pa.string()}),
    "Other": pa.schema({"id": pa.int64()}),
}
Given = Callable[..., dict[str, str]]


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    """Makes options with files that are there."""
    folder = tmp_path_factory.mktemp("keys")
    authority, own = Authority.new("web")
    authority.issue("ann", 30).write(folder / "ann.pem", folder / "ann.key")
    authority.issue("bob", 30).write(folder / "bob.pem", folder / "bob.key")
    (folder / "ca.pem").write_text(own.facts.pem)
    files = {"cert": folder / "ann.pem", "key": folder / "ann.key", "ca": folder / "ca.pem"}

    def make(**more: Any) -> dict[str, str]:
        found = {"relay": "grpc+tls://na:1", **files, **more}
        return {name.replace("_", "-"): str(value) for name, value in found.items() if value is not None}

    return make


def sql_of(options: dict[str, str]) -> str:
    return explained(fragment_of(WebOptions.of(options), ENTITIES))


def test_an_entity_is_all_its_columns(given: Given) -> None:
    assert sql_of(given(entity="item")) == 'SELECT "id", "price", "flag" FROM "item"'
    assert sql_of(given(path="other")) == 'SELECT "id" FROM "Other"'


def test_columns_conditions_and_limits_travel(given: Given) -> None:
    found = sql_of(given(entity="item", columns="Flag, id", filter="PRICE > 5 AND flag IN ('N', 'R')", limit=7))
    assert found == """SELECT "flag", "id" FROM "item" WHERE (("price" > 5.0) AND ("flag" IN ('N', 'R'))) LIMIT 7"""
    assert sql_of(given(entity="item", columns='["id"]')) == 'SELECT "id" FROM "item"'


def test_a_query_that_is_rows_of_one_entity_travels_whole(given: Given) -> None:
    query = "SELECT flag AS f, price * 2 AS twice FROM item AS i WHERE i.id > 1 -- a remark"
    fragment = fragment_of(WebOptions.of(given(query=query)), ENTITIES)
    assert [one.name for one in fragment.outputs] == ["f", "twice"]
    assert fragment.where is not None
    assert fragment.columns == {"flag", "price", "id"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT flag, count(*) AS n FROM item GROUP BY flag",
        "SELECT DISTINCT flag FROM item",
        "SELECT id FROM item ORDER BY id LIMIT 3",
        "SELECT a.id FROM item AS a JOIN other AS b ON a.id = b.id",
        "SELECT soundex(flag) AS s FROM item",
        "SELECT id FROM item WHERE soundex(flag) = 'N'",
        "SELECT id FROM item UNION ALL SELECT id FROM other",
        "SELECT 1 AS one",
    ],
)
def test_of_other_queries_nothing_is_lost(given: Given, query: str) -> None:
    with pytest.raises(UnsupportedQuery, match="more than rows") as caught:
        fragment_of(WebOptions.of(given(query=query)), ENTITIES)
    assert "spark_sql" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("more", "error", "message", "hint"),
    [
        ({"entity": "itm"}, WebObjectNotFound, "no entity 'itm'", "item"),
        ({"entity": "item", "columns": "pric"}, InvalidFragment, "no column 'pric'", "price"),
        ({"entity": "item", "filter": "pric > 1"}, InvalidFragment, "filter: There is no column 'pric'", "price"),
        ({"entity": "item", "filter": "soundex(flag) = 'N'"}, InvalidFragment, "filter", "where"),
        ({"entity": "item", "filter": "id > 1 GROUP BY"}, InvalidFragment, "Not an expression", "where"),
        ({"query": "SELECT nope FROM item"}, InvalidQuery, "nope", ""),
        ({}, UsageError, "neither an entity nor a query", "load"),
        ({"entity": "item", "query": "SELECT 1"}, UsageError, "an entity and a query", "Omit"),
        ({"query": "SELECT 1", "limit": "5"}, UsageError, "limit cannot be combined with a query", "into"),
        ({"entity": "item", "colums": "id"}, UsageError, "no option 'colums'", "columns"),
        ({"entity": "item", "key": None}, UsageError, "key is missing", "option"),
        ({"entity": "item", "relay": "http://na"}, UsageError, "http://na", "grpc"),
        ({"entity": "item", "cert": "/not/there.pem"}, InvalidCertificate, "/not/there.pem", "cert"),
        ({"entity": "item", "limit": "-1"}, InvalidValue, "limit", ""),
        ({"entity": "item", "timeout": "301"}, InvalidValue, "timeout", "300"),
        ({"entity": "item", "timeout": "soon"}, InvalidValue, "timeout", "seconds"),
        ({"entity": "item", "require_complete": "no"}, InvalidValue, "require-complete", "true or false"),
        ({"entity": "item", "columns": "[1"}, InvalidValue, "columns", "Write"),
    ],
)
def test_what_is_wrong_is_said_with_what_to_try(
    given: Given, more: dict[str, Any], error: type[OdfError], message: str, hint: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        fragment_of(WebOptions.of(given(**more)), ENTITIES)
    assert hint in (caught.value.hint or "")


def test_a_key_of_somebody_else_is_refused(given: Given) -> None:
    other = Path(given()["key"]).with_name("bob.key")
    with pytest.raises(InvalidCertificate, match="not that of the certificate"):
        WebOptions.of(given(entity="item", key=other))


def test_answers_are_complete_unless_that_is_not_wanted(given: Given) -> None:
    assert WebOptions.of(given(entity="item")).require_complete
    assert not WebOptions.of(given(entity="item", require_complete="FALSE")).require_complete


def test_spark_may_pick_columns(given: Given) -> None:
    fragment = fragment_of(WebOptions.of(given(entity="item")), ENTITIES)
    assert [one.name for one in picked(fragment, ["FLAG", "id"]).outputs] == ["flag", "id"]
    with pytest.raises(InvalidFragment, match="nope"):
        picked(fragment, ["nope"])


def test_access_travels_without_files_and_is_not_shown(given: Given) -> None:
    options = WebOptions.of(given(entity="item"))
    shown = f"{options!r} {options.access}"
    assert "grpc+tls://na:1" in shown
    assert "PRIVATE" not in shown
    assert "CERTIFICATE" not in shown
    there: Access = pickle.loads(pickle.dumps(options.access))
    assert there == options.access
    assert there.user is options.access.user, "one pool of connections for a process"
