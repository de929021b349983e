"""Documents of a relay: their form, the checks across them, and the steps of an apply."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.federation.documents import ALL, DATA, ENTITY, REMOTE, USER, declared, document, with_changed, write
from support.servers.certificates import self_signed

from odfpy.errors import InvalidValue, MalformedManifest
from odfpy.federation.errors import InvalidDocument
from odfpy.federation.model.arrow_types import dtype_name, parse_dtype
from odfpy.federation.model.connections import (
    DatasetConnection,
    DuckdbConnection,
    FilesConnection,
    FileTable,
    FlightConnection,
    PostgresConnection,
    TrinoConnection,
)
from odfpy.federation.model.documents import KINDS, tree_of
from odfpy.federation.model.expressions import check_source_sql, remote_expressions, transformation
from odfpy.federation.model.permissions import view_of
from odfpy.federation.model.reading import read_documents
from odfpy.federation.model.relations import local_expressions, relation_sql, remote_expressions_of
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.federation.model.steps import plan

NOTHING = RelayObjects({})


def refused(folder: Path, **changed: Any) -> InvalidDocument:
    with pytest.raises(InvalidDocument) as caught:
        plan(NOTHING, declared(folder, **changed), prune=False)
    return caught.value


# --- Types -----------------------------------------------------------------------------------------------------------

TYPES = st.recursive(
    st.sampled_from(
        [
            *(
                pa.int8(),
                pa.uint64(),
                pa.float16(),
                pa.float64(),
                pa.string(),
                pa.large_binary(),
                pa.bool_(),
                pa.null(),
            ),
            *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.duration("us"), pa.binary(16)),
            *(pa.timestamp("ns"), pa.timestamp("us", "Europe/Berlin"), pa.timestamp("s", "+02:00")),
            *(pa.decimal128(15, 2), pa.decimal256(70, 0), pa.decimal128(5, -3)),
        ]
    ),
    lambda inner: inner.map(pa.list_),
    max_leaves=5,
)


@given(TYPES)
def test_a_type_is_that_of_its_name(kind: pa.DataType) -> None:
    assert parse_dtype(dtype_name(kind)).equals(kind)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "int64",
            "Utf9",
            "Decimal128(99, 2)",
            "Decimal128(5)",
            "Timestamp(Nano, None)",
            "Time32(Nanosecond)",
            "",
            "List()",
        ),
        *("List(" * 50 + "Int64" + ")" * 50, "x" * 10_000, "FixedSizeBinary(0)", 'Timestamp(Second, Some("a b"))'),
    ],
)
def test_what_is_no_type_is_told_with_those_that_are(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_dtype(text)
    assert caught.value.hint


def test_a_type_that_never_ends_takes_no_time() -> None:
    text = f"List({' ' * 490}x"
    started = time.process_time()
    for _ in range(100):
        with pytest.raises(InvalidValue):
            parse_dtype(text)
    assert time.process_time() - started < 2


# --- The form of documents -------------------------------------------------------------------------------------------


def test_documents_of_all_kinds(tmp_path: Path) -> None:
    found = declared(tmp_path)
    assert [one.spec.KIND for one in found] == list(KINDS) == list(ALL)
    again = [KINDS[one.spec.KIND].model_validate(tree_of(one.spec)) for one in found]
    assert again == [one.spec for one in found]
    assert [str(one) for one in plan(NOTHING, found, prune=True)] == [
        "+ entity lineitem",
        "+ local data tpch",
        "+ local mapping lineitem",
        "+ peer global",
        "+ remote mapping lineitem at global/lines",
        "+ user ann",
    ]


def test_paths_are_relative_to_the_document(tmp_path: Path) -> None:
    (data,) = [one.spec for one in declared(tmp_path / "web") if one.spec.KIND == "LocalData"]
    assert tree_of(data)["connection"]["tables"]["lines"]["location"] == str(tmp_path / "web" / "lines.csv")


@pytest.mark.parametrize(
    ("kind", "path", "value", "message", "hint"),
    [
        ("Entity", "informatio", [], "entity lineitem.informatio: unknown key 'informatio'", "information"),
        ("Entity", "information.0.arrow_type", "", "information.0.arrow_type: unknown key", "arrow_dtype"),
        ("Entity", "information.1.arrow_dtype", "float64", "information.1.arrow_dtype: Not a type", "Float64"),
        ("Entity", "information.1.name", "ORDERKEY", "information.1: 'ORDERKEY' occurs twice", "case"),
        ("Entity", "name", "line item", "entity line item.name: not a name", ""),
        ("Entity", "information", [], "information: Tuple should have at least 1 item", ""),
        ("LocalData", "connection.kind", "file", "connection: no kind of connection: 'file'", "files"),
        ("LocalData", "connection.kind", ..., "connection: needs a kind", ""),
        ("LocalData", "connection.tables.lines.delimeter", ";", "unknown key 'delimeter'", "delimiter"),
        ("LocalData", "connection.tables.lines.location", "x.dat", "say the format", ""),
        ("LocalData", "connection.tables.lines.location", "s3://key:secret@b/x.csv", "keys do not belong there", ""),
        ("LocalData", "connection.tables.lines.location", "http://x/y.csv", "a URL is s3://", ""),
        ("LocalData", "connection.tables.lines.location", "*/x.csv", "only the last part", ""),
        ("LocalData", "connection.tables.lines.columns", {"a": "int"}, "column 'a': Not a type", ""),
        ("LocalData", "data_sources.0.source_sql", "line", "The connection has no table line", "lines"),
        ("LocalData", "data_sources.0.source_sql", "SELECT * FROM '/etc/passwd'", "source_sql: ", ""),
        ("LocalData", "data_sources.0.source_sql", "DELETE FROM lines", "only reads", ""),
        ("LocalData", "data_sources.0.source_sql", "lines; lines", "source_sql: Not the SQL", ""),
        ("LocalData", "data_sources.0.fields.3", {"name": "FLAG"}, "'FLAG' occurs twice", ""),
        ("LocalData", "data_sources.0.default_permission.allowed_rows", ..., "allowed_rows: is missing", ""),
        ("LocalData", "data_sources.0.default_permission.allowed_rows", "flg = 1", "no column 'flg'", "flag"),
        ("LocalData", "data_sources.0.default_permission.allowed_rows", "exists(select 1)", "has no", ""),
        ("LocalData", "data_sources.0.default_permission.allowed_columns.1", "flagg", "no field 'flagg'", "flag"),
        ("LocalMapping", "entity", "lineitems", "local mapping lineitems.entity: no entity 'lineitems'", "lineitem"),
        ("LocalMapping", "mappings.0.data", "tcph", "mappings.0.data: no local data 'tcph'", "tpch"),
        ("LocalMapping", "mappings.0.source", "items", "no source of tpch 'items'", "lineitem"),
        ("LocalMapping", "mappings.0.fields.0.field", "orderkey", "fields.0.field: no field 'orderkey'", "l_orderkey"),
        ("LocalMapping", "mappings.0.fields.0.information", "x", "no information 'x'", "orderkey"),
        ("LocalMapping", "mappings.0.fields.1.information", "TAX", "no information 'TAX'", "tax"),
        ("LocalMapping", "mappings.0.fields.1.transformation", "{w}", "Only {v} stands in braces", ""),
        ("LocalMapping", "mappings.0.fields.1.transformation", "sum({v})", "Not an expression over one row", ""),
        ("PeerRelay", "flight_endpoint", "grpc://h:1", "a peer is asked over TLS", ""),
        ("PeerRelay", "flight_endpoint", "grpc+tls://u:p@h:1", "keys do not belong", ""),
        ("PeerRelay", "rest_endpoint", "http://h", "write https://HOST:PORT", ""),
        ("RemoteMapping", "relay", "globall", "no peer 'globall'", "global"),
        ("RemoteMapping", "entity", "x", "remote mapping x at global/lines.entity: no entity", ""),
        ("RemoteMapping", "sql", "SELECT sum(tax) AS s FROM lines", "Not an expression over one row", ""),
        ("RemoteMapping", "sql", "SELECT tax AS tax_amount FROM lines", "no name in sql 'orderkey'", ""),
        ("RemoteMapping", "sql", "SELECT * FROM others", "reads its remote entity, lines, alone", ""),
        ("User", "certificates", ["nosuch.pem"], "Cannot read the certificate", "relative"),
        ("User", "permissions.0.source", "x", "no source of tpch 'x'", ""),
        ("User", "permissions.0.allowed_columns", ["x"], "allowed_columns.0: no field 'x'", ""),
    ],
)
def test_an_error_names_file_object_and_key(
    kind: str, path: str, value: Any, message: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path, **{kind: with_changed(ALL[kind], path, value)})
    assert error.message.startswith(f"{tmp_path / 'web.yaml'}, line ")
    assert message in error.message
    assert error.hint
    assert hint in error.hint
    assert "secret" not in error.message


@pytest.mark.parametrize(
    ("connection", "message"),
    [
        ({"kind": "trino", "host": "h", "user": "u", "password_env": "pass word"}, "name a variable"),
        ({"kind": "trino", "host": "h", "user": "u", "password_env": "P", "secure": False}, "only sent over TLS"),
        ({"kind": "trino", "host": "http://h", "user": "u"}, "write a host alone"),
        ({"kind": "trino", "host": "h", "user": "u", "password": "x"}, "unknown key 'password'"),
        ({"kind": "flight", "url": "grpc://h:1", "user": "u"}, "need each other"),
        ({"kind": "flight", "url": "grpc://h:1", "ca_file": "ca.pem"}, "need a URL that begins with grpc+tls"),
        ({"kind": "flight", "url": "https://h:1"}, "write grpc://HOST:PORT"),
        ({"kind": "duckdb", "path": "https://h/x.db"}, "a file of this machine"),
        ({"kind": "duckdb", "path": "a\nb"}, "control characters"),
        ({"kind": "postgres", "host": "h", "database": "d", "user": "u", "port": 0}, "greater than or equal to 1"),
        ({"kind": "dataset", "shown": "changelog", "as_of": "2024-01-01"}, "a changelog has no state"),
    ],
)
def test_connections_that_make_no_sense(connection: Any, message: str, tmp_path: Path) -> None:
    error = refused(tmp_path, LocalData=with_changed(DATA, "connection", connection))
    assert message in error.message
    assert "pass word" not in error.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- 1", "a document is a mapping"),
        ("kind: Entity\nspec: {}", "apiVersion is to be odf/web/v1"),
        (document("Entities", {}), "no kind of document: 'Entities'"),
        (document("Entity", None), "Entity needs a spec"),
        ('{"apiVersion": "odf/web/v1", "kind": "Entity", "specs": {}}', "unknown key 'specs'"),
    ],
)
def test_what_is_no_document(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "web.yaml").write_text(text)
    with pytest.raises(InvalidDocument, match=message):
        read_documents([tmp_path])


def test_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidDocument, match="no documents"):
        read_documents([tmp_path])
    with pytest.raises(InvalidDocument, match="No such file"):
        read_documents([tmp_path / "nosuch.yaml"])
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.yml").write_text(document("Entity", ENTITY))
    (tmp_path / ".hidden.yaml").write_text("[")
    (tmp_path / "notes.txt").write_text("[")
    assert [one.spec.key for one in read_documents([tmp_path])] == ["lineitem"]
    (tmp_path / "a.yaml").write_text(document("Entity", with_changed(ENTITY, "name", "LineItem")))
    with pytest.raises(InvalidDocument, match=r"x\.yml.*entity lineitem is declared twice; .*a\.yaml, line"):
        read_documents([tmp_path])
    (tmp_path / "a.yaml").write_text("a: [")
    with pytest.raises(MalformedManifest, match=r"a\.yaml, line"):
        read_documents([tmp_path])


def test_certificates_are_read_and_nobody_has_that_of_others(tmp_path: Path) -> None:
    self_signed(tmp_path)
    user = {**USER, "certificates": ["certificate.pem", "certificate.pem"]}
    (ann,) = [one.spec for one in declared(tmp_path, User=user) if one.spec.KIND == "User"]
    assert [pem.splitlines()[0] for pem in ann.certificates] == ["-----BEGIN CERTIFICATE-----"]  # type: ignore[union-attr]
    peer = {**ALL["PeerRelay"], "certificates": ["certificate.pem"]}
    assert "this certificate is that of global, too" in refused(tmp_path, User=user, PeerRelay=peer).message
    (tmp_path / "certificate.pem").write_text("nothing")
    assert "No certificate in PEM form" in refused(tmp_path, User=user).message


# --- SQL in documents ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("{v} / .05 - 1", "__odf_value / 0.05 - 1"),
        ("({v} + 1) * .05", "(__odf_value + 1) * 0.05"),
        ("'{v}' || { v }", "'{v}' || __odf_value"),
        ("CASE WHEN {v} > 1 THEN 'a' END", "CASE WHEN __odf_value > 1 THEN 'a' END"),
        ("'EU'", "'EU'"),
    ],
)
def test_transformations(text: str, sql: str) -> None:
    assert transformation(text).sql("duckdb") == sql


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{v} AS y",
            "{v}, 1",
            "{v}; DROP TABLE x",
            "{v}) or (1 = 1",
            "{v} FROM t",
            "a + {v}",
            "{v}.x",
            "*",
            "? + {v}",
        ),
        *("(SELECT 1)", "sum({v}) OVER ()", "'" + "{v}", "(" * 20_000 + "{v}", "x" * 20_000, "__odf_value.{v}"),
    ],
)
def test_what_is_no_transformation(text: str) -> None:
    with pytest.raises(InvalidValue):
        transformation(text)


@pytest.mark.parametrize("dialect", ["postgres", "duckdb", "trino", "spark"])
@pytest.mark.parametrize(
    "text",
    [
        *(
            "delete from x",
            "select 1; select 2",
            "with d as (delete from x returning *) select * from d",
            "x y",
            "drop table x",
        ),
        *("select * into y from x", "select * from x for update", "copy x to 'y'", "set a = 1", "call f()", "", "((("),
    ],
)
def test_what_is_no_source(text: str, dialect: str) -> None:
    with pytest.raises(InvalidValue):
        check_source_sql(text, dialect)


def test_the_relation_of_a_data_source(tmp_path: Path) -> None:
    web = RelayObjects.of(one.spec for one in declared(tmp_path))
    data = web.local_data["tpch"]
    assert relation_sql(data, data.data_sources[0]) == (
        'SELECT "l_orderkey" AS "l_orderkey", "tax" AS "l_tax", "flag" AS "flag" FROM "lines"'
    )


@pytest.mark.parametrize(
    ("connection", "sql", "relation"),
    [
        ({}, "com.example.rates", "ODF_CURRENT('com.example.rates')"),
        ({"as_at": "v1"}, "com.example.rates", "ODF_AS_AT('com.example.rates', 'v1')"),
        ({"as_of": "2024-01-01"}, "a/b", "ODF_AS_OF('a/b', '2024-01-01')"),
        ({"as_at": "v1", "as_of": "2024-01-01"}, "x", "ODF_AS_AT_OF('x', 'v1', '2024-01-01')"),
        ({"shown": "changelog"}, "x", "ODF_CHANGELOG('x')"),
        ({"shown": "changelog", "as_at": "v1"}, "x.y", '"x.y@v1"'),
        ({}, "SELECT a FROM odf_as_at('x', 'v1')", "(SELECT \"a\" FROM ODF_AS_AT('x', 'v1')) AS \"source\""),
    ],
)
def test_the_relation_of_a_dataset(connection: dict[str, str], sql: str, relation: str, tmp_path: Path) -> None:
    tree = with_changed(DATA, "connection", {"kind": "dataset", **connection})
    web = RelayObjects.of(
        one.spec for one in declared(tmp_path, LocalData=with_changed(tree, "data_sources.0.source_sql", sql))
    )
    data = web.local_data["tpch"]
    assert relation_sql(data, data.data_sources[0]).upper().endswith(f"FROM {relation}".upper())


def test_expressions_of_mappings(tmp_path: Path) -> None:
    web = RelayObjects.of(one.spec for one in declared(tmp_path))
    local = local_expressions(web.local_mappings["lineitem"].mappings[0])
    assert {name: one.sql("duckdb") for name, one in local.items()} == {
        "orderkey": '"l_orderkey"',
        "tax": '"l_tax" / 100',
        "returnflag": '"flag"',
    }
    (mapping,) = web.remote_mappings["lineitem"]
    remote = remote_expressions_of(mapping)
    assert {name: one.sql("duckdb") for name, one in remote.items()} == {
        "orderkey": '"orderkey"',
        "tax": "(tax * extendedprice) * 100",
    }
    assert remote_expressions(None, "lines") is None
    assert REMOTE["sql"]


# --- Permissions -----------------------------------------------------------------------------------------------------


def pairs(folder: Path, who: str | None, *permissions: Any, attributes: dict[str, str] | None = None) -> Any:
    user = {**USER, "permissions": list(permissions)}
    web = RelayObjects.of(one.spec for one in declared(folder, User=user))
    view = view_of(web, web.users.get(who or ""), "tpch", "lineitem", attributes)
    return None if view is None else [(part.columns, part.rows) for part in view.parts]


def test_default_permission(tmp_path: Path) -> None:
    default = [(("l_orderkey", "flag"), "\"flag\" = 'N'")]
    assert pairs(tmp_path, None) == default
    assert pairs(tmp_path, "ann") == default


def test_permissions_stand_in_the_place_of_the_default_and_stay_pairs(tmp_path: Path) -> None:
    place = {"data": "tpch", "source": "lineitem"}
    granted = pairs(
        tmp_path,
        "ann",
        {**place, "allowed_columns": ["l_tax"], "allowed_rows": "flag = recipient('country')"},
        {**place, "allowed_columns": "*", "allowed_rows": "flag = recipient('subject.O')"},
        {**place, "allowed_columns": ["flag"], "allowed_rows": True},
        attributes={"country": "FR", "subject.O": "Acme"},
    )
    assert granted == [
        (("l_tax",), "\"flag\" = 'DE'"),
        (None, "\"flag\" = 'Acme'"),
        (("flag",), None),
    ]


def test_a_condition_is_that_of_whoever_asks_now(tmp_path: Path) -> None:
    rows = {
        "data": "tpch",
        "source": "lineitem",
        "allowed_columns": "*",
        "allowed_rows": "flag = recipient('subject.O')",
    }
    for known in ({"subject.O": "Acme"}, {"subject.O": "Eve"}, {}, {"subject.O": "Acme", "subject.CN": "ann"}):
        ((_, condition),) = pairs(tmp_path, "ann", rows, attributes=known)
        assert condition == ('"flag" = \'' + known["subject.O"] + "'" if known else '"flag" = NULL')


def test_without_a_permission_nothing_shows(tmp_path: Path) -> None:
    data = with_changed(DATA, "data_sources.0.default_permission", ...)
    web = RelayObjects.of(one.spec for one in declared(tmp_path, LocalData=data, User=None))
    assert view_of(web, None, "tpch", "lineitem") is None
    assert view_of(web, None, "tpch", "nosuch") is None
    empty = {"data": "tpch", "source": "lineitem", "allowed_columns": [], "allowed_rows": "true"}
    assert pairs(tmp_path, "ann", empty) is None


# --- Steps -----------------------------------------------------------------------------------------------------------


def test_steps_lead_to_what_is_declared_and_then_there_are_none(tmp_path: Path) -> None:
    found = declared(tmp_path)
    known = RelayObjects.of(one.spec for one in found)
    assert plan(known, found, prune=True) == []
    entity = with_changed(ENTITY, "information.1.arrow_dtype", "Float32")
    data = with_changed(DATA, "data_sources.0.default_permission.allowed_rows", "true")
    changed = declared(tmp_path, Entity=entity, LocalData=data, User=None)
    assert [str(one) for one in plan(known, changed, prune=False)] == [
        "~ entity lineitem: information.tax.arrow_dtype Float64 -> Float32",
        "~ local data tpch: data_sources.lineitem.default_permission.allowed_rows flag = 'N' -> true",
    ]
    assert str(plan(known, changed, prune=True)[-1]) == "- user ann"


def test_what_stays_must_still_fit(tmp_path: Path) -> None:
    known = RelayObjects.of(one.spec for one in declared(tmp_path))
    entity = with_changed(ENTITY, "information.2.name", "flag")
    alone = declared(tmp_path, **{**dict.fromkeys(ALL), "Entity": entity})
    with pytest.raises(InvalidDocument, match=r"as it was applied before: local mapping lineitem.*'returnflag'"):
        plan(known, alone, prune=False)
    assert [one.sign for one in plan(known, alone, prune=True)] == ["~", *"-----"]


def test_removal_goes_from_what_needs_to_what_is_needed(tmp_path: Path) -> None:
    known = RelayObjects.of(one.spec for one in declared(tmp_path))
    steps = plan(known, [], prune=True)
    assert [one.key[0] for one in steps] == list(reversed(KINDS))


def test_documents_that_are_written_anew_change_nothing(tmp_path: Path) -> None:
    known = RelayObjects.of(one.spec for one in declared(tmp_path))
    write(tmp_path, **dict(reversed(ALL.items())))
    assert plan(known, read_documents([tmp_path]), prune=True) == []


def test_documents_on_the_page_are_documents(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")
    self_signed(tmp_path)
    (tmp_path / "certificate.pem").rename(tmp_path / "ann.pem")
    for number, text in enumerate(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)):
        (tmp_path / f"{number}.yaml").write_text(text)
    assert [one.spec.KIND for one in read_documents([tmp_path])] == ["Entity", "User"]


def test_the_page_has_every_key_of_every_kind_and_connection() -> None:
    page = (Path(__file__).parents[2] / "docs" / "federation.md").read_text(encoding="utf-8")
    connections = (
        DatasetConnection,
        FilesConnection,
        FileTable,
        FlightConnection,
        TrinoConnection,
        DuckdbConnection,
        PostgresConnection,
    )
    keys = {info.alias or name for kind in (*KINDS.values(), *connections) for name, info in kind.model_fields.items()}
    assert {key for key in keys if f"`{key}`" not in page} == set()
