"""`odf add` refuses what can never work, with its place in the manifest, and nothing that could."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.coordinator.manifests import load
from odfpy.errors import MalformedManifest

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: a
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      prepare: {prepare}
      read: {read}
      preprocess: {preprocess}
      merge: {merge}
    - {vocab}
"""
SCHEMA = "schema: {fields: [{name: id, type: Int64}, {name: at, type: Timestamp}, {name: day, type: Date}]}"
GOOD = {
    "fetch": "{kind: Url, url: 'https://example.com/a.csv'}",
    "prepare": "[]",
    "read": f"{{kind: Csv, {SCHEMA}}}",
    "preprocess": "null",
    "merge": "{kind: Ledger, primaryKey: [id]}",
    "vocab": "{kind: SetVocab, eventTimeColumn: at}",
}
LINES = {"fetch": 8, "prepare": 9, "read": 10, "preprocess": 11, "merge": 12, "vocab": 13}


def taken(folder: Path, **parts: str) -> None:
    """Read a manifest that is good but for some parts."""
    (folder / "a.yaml").write_text(MANIFEST.format(**{**GOOD, **parts}))
    load([folder / "a.yaml"])


def refused(folder: Path, **parts: str) -> tuple[str, str | None]:
    """What is said of the first of the parts, behind file, line and column; and the hint."""
    with pytest.raises(MalformedManifest) as caught:
        taken(folder, **parts)
    error = caught.value
    assert error.code == "E202"
    file, line, rest = error.message.split(", ", 2)
    assert file == str(folder / "a.yaml")
    column, message = rest.split(": ", 1)
    assert line == f"line {LINES[next(iter(parts))]}"
    assert column.startswith("column ")
    return message, error.hint


def polled(**options: str) -> str:
    return (
        "{kind: FilesGlob, path: 'in/*', eventTime: {kind: FromPath, "
        + ", ".join(f"{key}: '{value}'" for key, value in options.items())
        + "}}"
    )


def csv(option: str) -> str:
    return f"{{kind: Csv, {option}, {SCHEMA}}}"


def sql(query: str, engine: str = "datafusion") -> str:
    return f"{{kind: Sql, engine: {engine}, query: '{query}'}}"


def test_a_manifest_may_be_right(tmp_path: Path):
    taken(tmp_path)


@pytest.mark.parametrize(
    ("part", "text", "place"),
    [
        ("fetch", "{kind: Url, url: 'gopher://x'}", "url:"),
        ("read", csv("encoding: klingon"), "encoding:"),
        ("read", "{kind: Csv, schema: {fields: [{name: id, type: text}]}}", "type:"),
        ("read", "{kind: Csv, ddlSchema: [id INT, b datetime]}", "b datetime"),
        ("merge", "{kind: Snapshot, primaryKey: [id, x]}", "x]"),
    ],
)
def test_a_mistake_is_told_with_line_and_column(tmp_path: Path, part: str, text: str, place: str):
    with pytest.raises(MalformedManifest) as caught:
        taken(tmp_path, **{part: text})
    column = f"      {part}: {text}".index(place) + 1
    assert caught.value.message.startswith(f"{tmp_path / 'a.yaml'}, line {LINES[part]}, column {column}: ")


# --- Fetch, prepare --------------------------------------------------------------------------------------------------

FETCHES = {
    "an unknown scheme": ("{kind: Url, url: 'gopher://x/y'}", "unknown scheme gopher"),
    "no scheme": ("{kind: Url, url: 'a/b.csv'}", "a/b.csv is not a URL"),
    "nothing": ("{kind: Url, url: ''}", "an empty text is not a URL"),
    "a file of another machine": ("{kind: Url, url: 'file://there/b.csv'}", "names a file on another machine"),
    "a file with a NUL": ("{kind: Url, url: 'file:a%00b'}", "is not a name of a file"),
    "an impossible port": ("{kind: Url, url: 'https://x:99999/'}", "is not a URL"),
    "no host": ("{kind: Url, url: 'http:///a.csv'}", "Not an http or https URL: 'http:///a.csv'"),
    "a host that is none": ("{kind: Url, url: 'https://a b/c.csv'}", "Not an http or https URL"),
    "a path to nothing": ("{kind: FilesGlob, path: ''}", "an empty path matches no file"),
    "a path to folders": ("{kind: FilesGlob, path: 'in/'}", "'in/' matches folders, never a file"),
    "a path that is a URL": ("{kind: FilesGlob, path: 'https://x/*.csv'}", "is a URL"),
    "a pattern without a group": (polled(pattern="abc"), "has no group"),
    "a pattern that is none": (polled(pattern="("), "is not a regular expression"),
    "a format of no time": (polled(pattern="(.*)", timestampFormat="%Q"), "'%Q', which is not known"),
    "a port that is none": ("{kind: Mqtt, host: x, port: 0, topics: [{path: a}]}", "0 is not a port"),
    "no topic": ("{kind: Mqtt, host: x, port: 1883, topics: []}", "there is no topic"),
}


@pytest.mark.parametrize(("fetch", "words"), FETCHES.values(), ids=FETCHES)
def test_what_cannot_be_fetched(tmp_path: Path, fetch: str, words: str):
    assert words in refused(tmp_path, fetch=fetch)[0]


@pytest.mark.parametrize(
    "fetch",
    [
        "{kind: Url, url: '${{ env.PLACE }}/a.csv'}",
        "{kind: Url, url: 'https://x:${{ env.PORT }}/a.csv'}",
        "{kind: Url, url: 's3://bucket/a b?c#d'}",
        "{kind: Url, url: 'file:in/a.csv'}",
        "{kind: FilesGlob, path: 'in/**/*.csv'}",
        "{kind: FilesGlob, path: '/data/[ab].csv'}",
        polled(pattern="(.*)", timestampFormat="yyyy-MM-dd"),
    ],
)
def test_what_may_be_fetched(tmp_path: Path, fetch: str):
    taken(tmp_path, fetch=fetch)


PREPARES = {
    "a part of a single file": ("[{kind: Decompress, format: Gzip, subPath: a.csv}]", "a Gzip file is a single file"),
    "no command": ("[{kind: Decompress, format: Zip}, {kind: Pipe, command: []}]", "there is no command"),
    "an unknown compression": ("[{kind: Decompress, format: Brotli}]", "unknown value 'Brotli'"),
}


@pytest.mark.parametrize(("prepare", "words"), PREPARES.values(), ids=PREPARES)
def test_what_cannot_be_prepared(tmp_path: Path, prepare: str, words: str):
    assert words in refused(tmp_path, prepare=prepare)[0]


def test_a_command_that_is_not_installed_here_may_be_elsewhere(tmp_path: Path):
    taken(tmp_path, prepare="[{kind: Pipe, command: [no-such-program]}]")


# --- Read ------------------------------------------------------------------------------------------------------------

READS = {
    "two separators": (csv("separator: ';;'"), "CSV option `separator` is ';;'"),
    "no separator": (csv("separator: ''"), "CSV option `separator` cannot be ''"),
    "a separator that is the quote": (csv("separator: '\"'"), "CSV option `separator` cannot be '\"'"),
    "two quotes": (csv("quote: '<>'"), "CSV option `quote` is '<>'"),
    "an escape beyond ASCII": (csv("escape: '€'"), "CSV option `escape` is '€'"),
    "an unknown encoding": (csv("encoding: klingon"), "There is no encoding 'klingon'"),
    "times of no format": (csv("timestampFormat: '%Q'"), "'%Q', which is not known"),
    "days of no format": (csv("dateFormat: 'today'"), "The time format 'today'"),
    "a column twice": ("{kind: Csv, ddlSchema: [id INT, ID TEXT, id INT]}", "'id' is defined twice"),
    "both schemas": (csv("ddlSchema: [id INT]"), "both `schema` and `ddlSchema`"),
    "a decimal of no digit": (
        "{kind: Csv, schema: {fields: [{name: id, type: {kind: Decimal, precision: 0, scale: 0}}]}}",
        "precision should be between 1",
    ),
    "a negative size": (
        "{kind: Csv, schema: {fields: [{name: id, type: {kind: Binary, fixedLength: -1}}]}}", "-1 is not between 0"),
}  # fmt: skip


@pytest.mark.parametrize(("read", "words"), READS.values(), ids=READS)
def test_what_cannot_be_read(tmp_path: Path, read: str, words: str):
    assert words in refused(tmp_path, read=read)[0]


@pytest.mark.parametrize(
    "read",
    [
        csv("separator: '\\t'"),
        csv("separator: ';', quote: '', escape: ''"),
        csv("encoding: windows-1252"),
        "{kind: Csv, timestampFormat: '%Q', schema: {fields: [{name: id, type: Int64}]}}",
        "{kind: Csv}",
    ],
)
def test_what_may_be_read(tmp_path: Path, read: str):
    taken(tmp_path, read=read)


ODF_TYPES = {
    "BIGINT": "Int64", "int": "Int32, or Int64", "text": "String", "datetime": "Timestamp", "varchar(20)": "String",
    "double": "Float64", "DECIMAL(10, 2)": "{kind: Decimal, precision: 10, scale: 2}", "boolean": "Bool",
    "timestamp with time zone": "Timestamp", "array<int>": "{kind: List, ",
}  # fmt: skip


@pytest.mark.parametrize(("written", "meant"), ODF_TYPES.items())
def test_types_of_sql_in_a_schema_are_answered_with_ours(tmp_path: Path, written: str, meant: str):
    message, hint = refused(tmp_path, read=f"{{kind: Csv, schema: {{fields: [{{name: id, type: '{written}'}}]}}}}")
    assert message.startswith(f"unknown kind '{written}'")
    assert hint is not None
    assert hint.startswith(f"Write {meant}")


DDL_TYPES = {
    "datetime": "TIMESTAMP", "number": "BIGINT for whole numbers", "float64": "DOUBLE", "json": "STRING", "time": "STRING",
}  # fmt: skip


@pytest.mark.parametrize(("written", "meant"), DDL_TYPES.items())
def test_and_other_types_in_a_ddl_schema_with_those_that_are_known(tmp_path: Path, written: str, meant: str):
    message, hint = refused(tmp_path, read=f"{{kind: Csv, ddlSchema: ['a INT', 'id {written}']}}")
    assert message.endswith(f"line 2 of ddlSchema, 'id {written}' at `content.metadata[0].read.ddlSchema[1]`")
    assert hint is not None
    assert hint.startswith(f"Write {meant}")


@pytest.mark.parametrize("written", ["text", "varchar", "varchar(9)", "int64", "str", "string", "bool"])
def test_what_is_understood_all_the_same_is_taken(tmp_path: Path, written: str):
    taken(tmp_path, read=f"{{kind: Csv, ddlSchema: ['id {written}']}}")


# --- Merge -----------------------------------------------------------------------------------------------------------

MERGES = {
    "a key that is not read": ("{kind: Ledger, primaryKey: [idd]}", "the primary key column 'idd'", "Did you mean id?"),
    "one of several": ("{kind: Snapshot, primaryKey: [id, x]}", "the primary key column 'x'", "It has: id, at, day."),
    "a key in other letters": ("{kind: UpsertStream, primaryKey: [ID]}", "the primary key column 'ID'", "Did you mean id?"),
    "a compare column": (
        "{kind: Snapshot, primaryKey: [id], compareColumns: [dy]}", "the compare column 'dy'", "Did you mean day?"),
}  # fmt: skip


@pytest.mark.parametrize(("merge", "words", "hint"), MERGES.values(), ids=MERGES)
def test_columns_that_the_merge_strategy_names_must_be_read(tmp_path: Path, merge: str, words: str, hint: str):
    message, found = refused(tmp_path, merge=merge)
    assert message.startswith(f"{words} is not in the schema of the read step at `content.metadata[0].merge.")
    assert found == hint


@pytest.mark.parametrize("kind", ["Ledger", "Snapshot", "UpsertStream", "ChangelogStream"])
def test_a_merge_by_key_needs_one(tmp_path: Path, kind: str):
    message, hint = refused(tmp_path, merge=f"{{kind: {kind}, primaryKey: []}}")
    assert message == "there is no primary key column at `content.metadata[0].merge.primaryKey`"
    assert hint == "List the key columns, or set `kind: Append`."


def test_the_event_time_can_always_be_compared(tmp_path: Path):
    merge = "{kind: Snapshot, primaryKey: [id], compareColumns: [event_time]}"
    taken(tmp_path, merge=merge, vocab="{kind: SetInfo}")
    assert "event_time" in refused(tmp_path, merge=merge)[0], "it has another name there"


GIVES = {
    "columns": ("select id as key, at from input", "key, at"),
    "all columns": ("select * from input", "id, at, day"),
    "all columns and another": (
        "select *, day as other from input where id > 1 order by id limit 5",
        "id, at, day, other",
    ),
    "the first of a union": ("select day from input union all select id from input", "day"),
    "a table of it": ("select i.at from input as i join input as j on i.id = j.id", "at"),
}


@pytest.mark.parametrize("engine", ["datafusion", "spark", "flink"])
@pytest.mark.parametrize(("query", "columns"), GIVES.values(), ids=GIVES)
def test_a_query_gives_the_columns_then(tmp_path: Path, query: str, columns: str, engine: str):
    last = columns.rpartition(", ")[2]
    taken(tmp_path, preprocess=sql(query, engine), merge=f"{{kind: Ledger, primaryKey: [{last.upper()}]}}")
    message, hint = refused(tmp_path, merge="{kind: Ledger, primaryKey: [nope]}", preprocess=sql(query, engine))
    assert message.startswith("the primary key column 'nope' is not in the result of the preprocessing query")
    assert hint == f"It has: {columns}."


@pytest.mark.parametrize(
    "query",
    [
        "select id + 1, at from input",
        "select * except (at) from input",
        "select * from input join other on true",
        "with x as (select id as key from input) select * from x",
        "with input as (select id as key from input) select * from input",
        "select x.* from (select id as key from input) x",
        "select * from (select id as key from input)",
        "selec at frm input",
    ],
)
def test_where_only_an_engine_can_tell_nothing_is_refused(tmp_path: Path, query: str):
    taken(tmp_path, preprocess=sql(query), merge="{kind: Ledger, primaryKey: [key]}")


def test_steps_go_one_behind_the_other(tmp_path: Path):
    steps = "{kind: Sql, engine: datafusion, queries: [{alias: one, query: 'select id as key from input'}, {query: 'select * from one'}]}"
    taken(tmp_path, preprocess=steps, merge="{kind: Ledger, primaryKey: [key]}")
    assert "'id'" in refused(tmp_path, merge="{kind: Ledger, primaryKey: [id]}", preprocess=steps)[0]


def test_without_a_schema_nobody_can_tell(tmp_path: Path):
    taken(tmp_path, read="{kind: Csv, header: true}", merge="{kind: Ledger, primaryKey: [x]}")
    taken(tmp_path, read="{kind: Csv}", preprocess=sql("select * from input"), merge="{kind: Ledger, primaryKey: [x]}")
    assert (
        "'x'"
        in refused(
            tmp_path, merge="{kind: Ledger, primaryKey: [x]}", read="{kind: Csv}", preprocess=sql("select a from input")
        )[0]
    )


def test_push_sources_have_names_of_their_own(tmp_path: Path):
    push = "{{kind: AddPushSource, sourceName: {}, read: {{kind: Csv}}, merge: {{kind: Append}}}}".format
    taken(tmp_path, vocab=f"{push('a')}\n    - {push('b')}")
    with pytest.raises(
        MalformedManifest, match=r"another push source has the name 'a' at `content\.metadata\[2\]\.sourceName"
    ):
        taken(tmp_path, vocab=f"{push('a')}\n    - {push('a')}")


# --- Names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", ["ddlSchema: ['`` INT', 'id INT']", "schema: {fields: [{name: '', type: Int64}]}"])
def test_columns_have_names(tmp_path: Path, columns: str):
    assert refused(tmp_path, read=f"{{kind: Csv, {columns}}}")[0].startswith("a column has no name at ")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("eventTimeColumn: offset", "two system columns have the name 'offset'"),
        ("offsetColumn: at, eventTimeColumn: at", "two system columns have the name 'at'"),
    ],
)
def test_system_columns_have_names_of_their_own(tmp_path: Path, names: str, words: str):
    message, hint = refused(tmp_path, vocab=f"{{kind: SetVocab, {names}}}")
    assert message == f"{words} at `content.metadata[1]`"
    assert hint is not None
    assert "`offset`, `op`, `system_time`, `event_time`" in hint
