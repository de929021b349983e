"""Documents to values: strict, forgiving about case and short forms, and exact about the place of a mistake."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from odfpy.chain.events import AddData, MetadataEvent, SetDataSchema, SetInfo, SetPollingSource, SetTransform
from odfpy.chain.read_steps import ReadStep
from odfpy.chain.sources import (
    CacheForever,
    EventTimeFromMetadata,
    FetchFilesGlob,
    FetchUrl,
    MergeAppend,
    SourceOrdering,
)
from odfpy.codec.tree import TreeError, format_path, from_tree, to_tagged_tree, to_tree
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import Multihash
from odfpy.data.schemas import schema
from odfpy.data.schemas.schema import DataField, DataSchema, TimeUnit
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias

URL = {"kind": "Url", "url": "https://example.com"}
POLLING = {"kind": "SetPollingSource", "fetch": URL, "read": {"kind": "Csv"}, "merge": {"kind": "Append"}}


def read(tree: Any) -> Any:
    return from_tree(MetadataEvent, tree)


def polling(**changes: Any) -> Any:
    return read({**POLLING, **changes})


# --- Forms -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["FilesGlob", "filesGlob", "filesglob", "FILESGLOB"])
def test_kinds_are_read_in_any_case(kind: str):
    assert polling(fetch={"kind": kind, "path": "*.csv"}).fetch == FetchFilesGlob("*.csv")


@pytest.mark.parametrize("order", ["ByEventTime", "byEventTime", "byeventtime"])
def test_enum_values_are_read_in_any_case(order: str):
    source = polling(fetch={"kind": "FilesGlob", "path": "*", "order": order})
    assert source.fetch.order is SourceOrdering.BY_EVENT_TIME


def test_short_forms_stand_for_the_kind_alone():
    source = polling(fetch={**URL, "eventTime": "FromMetadata", "cache": "Forever"}, merge="append")
    assert source.fetch == FetchUrl("https://example.com", EventTimeFromMetadata(), CacheForever())
    assert source.merge == MergeAppend()


def test_types_of_a_schema_are_read_in_long_and_short_form():
    fields = [
        {"name": "long", "type": {"kind": "Timestamp"}},
        {"name": "short", "type": "timestamp"},
        {"name": "full", "type": {"kind": "Timestamp", "unit": "nanosecond", "timezone": "UTC"}},
        {"name": "nested", "type": {"kind": "Option", "inner": {"kind": "List", "itemType": "Int32"}}},
    ]
    assert from_tree(DataSchema, {"fields": fields}).fields == (
        DataField("long", schema.Timestamp()),
        DataField("short", schema.Timestamp()),
        DataField("full", schema.Timestamp(TimeUnit.NANOSECOND, "UTC")),
        DataField("nested", schema.Option(schema.List(schema.Int32()))),
    )


def test_a_key_without_value_is_an_absent_field():
    assert read({"kind": "SetInfo", "description": None, "keywords": ["a"]}) == SetInfo(None, ("a",))


def test_references_are_ids_or_aliases():
    id_ = DatasetId(bytes(32))
    tree = {"kind": "SetTransform", "inputs": [], "transform": {"kind": "Sql", "engine": "spark", "query": "SELECT 1"}}
    event = read({**tree, "inputs": [{"datasetRef": str(id_)}, {"datasetRef": "alice/rates", "alias": "r"}]})
    assert isinstance(event, SetTransform)
    assert [item.dataset_ref for item in event.inputs] == [id_, DatasetAlias.parse("alice/rates")]


def test_documents_are_written_in_long_form_without_absent_fields():
    event = from_tree(SetPollingSource, {key: value for key, value in POLLING.items() if key != "kind"})
    assert to_tagged_tree(event) == POLLING
    assert list(to_tagged_tree(event)) == ["kind", "fetch", "read", "merge"]


def test_attributes_are_written_as_a_mapping():
    event = AddData(extra=ExtraAttributes('{"b":1,"a":{"z":[1,2.5,null]}}'))
    assert to_tree(event) == {"extra": {"b": 1, "a": {"z": [1, 2.5, None]}}}
    assert from_tree(AddData, to_tree(event)).extra == ExtraAttributes('{"a":{"z":[1,2.5,null]},"b":1}')


def test_raw_arrow_schema_is_base64():
    assert read({"kind": "SetDataSchema", "rawArrowSchema": "AAEC"}) == SetDataSchema(raw_arrow_schema=b"\0\1\2")


# --- Mistakes --------------------------------------------------------------------------------------------------------

MISTAKES = {
    "unknown key": (
        {**POLLING, "fetsh": 1}, "fetsh: unknown key in SetPollingSource", "Did you mean fetch?",
    ),
    "unknown key below": (
        {**POLLING, "fetch": {**URL, "zzz": 1}}, "fetch.zzz: unknown key in Url",
        "Known keys: url, eventTime, cache, headers",
    ),
    "key in another case": (
        {**POLLING, "fetch": {"kind": "Url", "URL": "x"}}, "fetch.URL: unknown key in Url", "Did you mean url?",
    ),
    "key in snake case": (
        {**POLLING, "read": {"kind": "Csv", "infer_schema": True}}, "read.infer_schema: unknown key in Csv",
        "Did you mean inferSchema?",
    ),
    "key where none may be": (
        {**POLLING, "merge": {"kind": "Append", "x": 1}}, "merge.x: unknown key in Append", "Known keys: none",
    ),
    "missing field": (
        {key: POLLING[key] for key in ("kind", "fetch", "read")}, "`merge` is missing in SetPollingSource", None,
    ),
    "missing field below": (
        {**POLLING, "fetch": {"kind": "Url"}}, "fetch: `url` is missing in Url", None,
    ),
    "missing kind": (
        {**POLLING, "fetch": {"url": "x"}}, "fetch: `kind` is missing",
        "One of: Url, FilesGlob, Container, Mqtt, EthereumLogs",
    ),
    "misspelt kind": (
        {**POLLING, "fetch": {"kind": "FileGlob", "path": "x"}}, "fetch.kind: unknown kind 'FileGlob'",
        "Did you mean FilesGlob?",
    ),
    "misspelt event": (
        {"kind": "SetPolingSource"}, "kind: unknown kind 'SetPolingSource'",
        "Did you mean SetPollingSource?",
    ),
    "kind that is not text": (
        {**POLLING, "merge": {"kind": 1}}, "merge.kind: unknown kind 1",
        "One of: Append, Ledger, Snapshot, ChangelogStream, UpsertStream",
    ),
    "misspelt enum value": (
        {**POLLING, "fetch": {"kind": "FilesGlob", "path": "x", "order": "ByNames"}},
        "fetch.order: unknown value 'ByNames'", "Did you mean ByName?",
    ),
    "text where a list belongs": (
        {**POLLING, "prepare": "gunzip"}, "prepare: expected a list, found 'gunzip'", None,
    ),
    "mapping where a list belongs": (
        {**POLLING, "merge": {"kind": "Ledger", "primaryKey": {"a": 1}}},
        "merge.primaryKey: expected a list, found a mapping", None,
    ),
    "list where a mapping belongs": (
        {**POLLING, "fetch": ["Url"]}, "fetch: expected a mapping, found a list", None,
    ),
    "schema in the older form": (
        {**POLLING, "read": {"kind": "Csv", "schema": ["id BIGINT"]}}, "read.schema: expected a mapping, found a list",
        "A list of columns such as `id BIGINT` belongs under the key `ddlSchema`.",
    ),
    "schema without fields": (
        {**POLLING, "read": {"kind": "Csv", "schema": [{"name": "id"}]}}, "read.schema: expected a mapping, found a list",
        "Write the list under `schema: {fields: [...]}`, or columns such as `id BIGINT` under `ddlSchema`.",
    ),
    "name where an input belongs": (
        {"kind": "SetTransform", "inputs": ["alice/rates"], "transform": {"kind": "Sql", "engine": "spark", "query": ""}},
        "inputs[0]: expected a mapping, found 'alice/rates'",
        "An input has its name under the key `datasetRef`: write {datasetRef: alice/rates}.",
    ),
    "nothing in a list": (
        {**POLLING, "merge": {"kind": "Ledger", "primaryKey": ["a", None]}},
        "merge.primaryKey[1]: expected text, found nothing", None,
    ),
    "number where text belongs": (
        {**POLLING, "read": {"kind": "Csv", "nullValue": 0}}, "read.nullValue: expected text, found the number 0",
        "Put it in quotes.",
    ),
    "truth value where text belongs": (
        {**POLLING, "read": {"kind": "Csv", "nullValue": False}},
        "read.nullValue: expected text, found the truth value false", "Put it in quotes.",
    ),
    "text where a truth value belongs": (
        {**POLLING, "read": {"kind": "Csv", "header": "yes"}}, "read.header: expected true or false, found 'yes'", None,
    ),
    "text where a number belongs": (
        {"kind": "AddData", "prevOffset": "9"}, "prevOffset: expected a whole number, found '9'", None,
    ),
    "truth value where a number belongs": (
        {"kind": "AddData", "prevOffset": True}, "prevOffset: expected a whole number, found the truth value true", None,
    ),
    "fraction where a number belongs": (
        {"kind": "AddData", "prevOffset": 1.5}, "prevOffset: expected a whole number, found the number 1.5", None,
    ),
    "negative offset": (
        {"kind": "AddData", "prevOffset": -1}, f"prevOffset: -1 is not between 0 and {2**64 - 1}", None,
    ),
    "offset of 65 bits": (
        {"kind": "AddData", "prevOffset": 2**64}, f"prevOffset: {2**64} is not between 0 and {2**64 - 1}", None,
    ),
    "bad time": (
        {"kind": "AddData", "newWatermark": "yesterday"}, "newWatermark: Not a time: 'yesterday'",
        "Write times as 2024-03-01T12:00:00Z or dates as 2024-03-01.",
    ),
    "bad hash": (
        {"kind": "AddData", "prevCheckpoint": "f1620zz"}, "prevCheckpoint: Not multibase: 'f1620zz'", None,
    ),
    "bad base64": (
        {"kind": "SetDataSchema", "rawArrowSchema": "%"}, "rawArrowSchema: Not base64: '%'", None,
    ),
    "base64 that is not ASCII": (
        {"kind": "SetDataSchema", "rawArrowSchema": "é"}, "rawArrowSchema: Not base64: 'é'", None,
    ),
    "bad id": (
        {"kind": "Seed", "datasetId": "did:key:z6Mk", "datasetKind": "Root"},
        "datasetId: Not a dataset id: 'did:key:z6Mk'", "Ids of datasets begin with did:odf:",
    ),
    "attributes that are not a mapping": (
        {"kind": "AddData", "extra": [1]}, "extra: expected a mapping, found a list", None,
    ),
    "attributes that JSON cannot hold": (
        {"kind": "AddData", "extra": {"a": float("inf")}}, "extra: Extra attributes cannot be written as JSON: ", None,
    ),
    "attributes nested too deep": (
        {"kind": "AddData", "extra": {"a": eval("[" * 150 + "]" * 150)}},
        "extra: Extra attributes are nested more than 100 levels deep", None,
    ),
    "key that is not text": ({"kind": "SetInfo", 1: 2}, "expected keys of text, found 1", None),
    "event that is not a mapping": (7, "expected a mapping, found the number 7", None),
    "event that is nothing": (None, "expected a mapping, found nothing", None),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_an_error_with_its_place_and_a_hint(name: str):
    tree, message, hint = MISTAKES[name]
    with pytest.raises(TreeError) as caught:
        read(tree)
    if name == "attributes that JSON cannot hold":
        assert caught.value.message.startswith(message)
    else:
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_paths_are_written_like_code():
    assert format_path(("content", "metadata", 0, "read", "schema")) == "content.metadata[0].read.schema"
    assert format_path(()) == ""


def test_a_path_can_begin_anywhere():
    with pytest.raises(TreeError) as caught:
        from_tree(ReadStep, {"kind": "Csv", "header": 1}, ("content", "metadata", 2, "read"))
    assert caught.value.path == ("content", "metadata", 2, "read", "header")


def test_hash_in_another_base_is_written_in_base16():
    hash_ = Multihash.of(b"x")
    text = "u" + base64.urlsafe_b64encode(hash_.to_bytes()).decode().rstrip("=")
    event = read({"kind": "AddData", "prevCheckpoint": text})
    assert event.prev_checkpoint == hash_
    assert to_tree(event) == {"prevCheckpoint": str(hash_)}
