"""The requests that the Spark connector sends, and what it requires of the answers.

Taken down from the connector's source, for no registry in reach has its jars: `DeltaSharingRestClient` of delta-sharing,
and the data source `deltaSharing` of Delta Lake. Each requirement is one for which the connector raises if it is not
met.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from serving.sharing.conftest import Shared
from serving.sharing.test_delta_sharing import LOG, RATES, state_of, table_of
from support.servers.serving import Answer

FEATURES = (
    "deletionVectors,columnMapping,timestampNtz,typeWidening-preview,typeWidening,geospatial,variantType-preview,"
    "variantType,variantShredding-preview,variantShredding"
)
CAPABILITIES = {
    "parquet": "responseformat=parquet",
    "delta": f"responseformat=delta;readerfeatures={FEATURES}",
    "either": f"responseformat=parquet,delta;readerfeatures={FEATURES}",
}
AGENT = "Delta-Sharing-Spark/4.0.0 Spark/4.0.0 QueryId-0a1b2c3d  Hadoop/3.4.1 Linux/6.1 java/17 scala/2.13.16"
STREAMING = AGENT.replace("Delta-Sharing-Spark/", "Delta-Sharing-SparkStructuredStreaming/")
LATEST: dict[str, Any] = {"predicateHints": [], "includeRefreshToken": True}
OF_A_VERSION: dict[str, Any] = {"predicateHints": [], "includeRefreshToken": False}
FORMS = pytest.mark.parametrize("form", list(CAPABILITIES))


class Spark:
    """A client that asks as the connector does, and checks what it checks.

    Attributes:
        form: formats that it reads, and features, of `CAPABILITIES`.
        wants_end: whether it is set to ask for the end of an answer.
        agent: its name.
    """

    def __init__(self, shared: Shared, form: str, *, wants_end: bool = False, agent: str = AGENT) -> None:
        self.shared = shared
        self.form = form
        self.wants_end = wants_end
        self.agent = agent

    def ask(self, path: str, body: Any = None, *, wants_end: bool | None = None, **headers: str) -> Answer:
        """Send a request with the headers of the connector."""
        ends = self.wants_end if wants_end is None else wants_end
        told = CAPABILITIES[self.form] + (";includeendstreamaction=true" if ends else "")
        if body is not None:
            headers["content_type"] = "application/json"
        answer = self.shared.ask(path, body=body, delta_sharing_capabilities=told, user_agent=self.agent, **headers)
        assert answer.status == 200, answer.body
        if "fileidhash" in headers:
            assert answer.headers["fileidhash"] == headers["fileidhash"]
        return answer

    def lines(self, path: str, body: Any = None, **more: Any) -> tuple[Answer, list[Any], dict[str, Any] | None]:
        """The answer, its lines, and its end apart."""
        answer = self.ask(path, body, **more)
        found = [json.loads(line) for line in answer.body.splitlines()]
        assert answer.headers["delta-table-version"].isdigit()
        told = dict(one.split("=") for one in answer.headers["delta-sharing-capabilities"].lower().split(";"))
        assert told["responseformat"] in CAPABILITIES[self.form].partition(";")[0]
        end = found[-1].get("endStreamAction")
        if told.get("includeendstreamaction") == "true":
            assert end is not None
            assert "errorMessage" not in end
        assert [next(iter(one)) for one in found[:2]] == ["protocol", "metaData"]
        return answer, found[:-1] if end is not None else found, end

    def pages(self, path: str, body: dict[str, Any]) -> tuple[list[list[Any]], list[dict[str, Any] | None]]:
        """The lines of all pages of a query, one file a page, asked for as `getFilesByPage` does."""
        answer, lines, end = self.lines(path, {**body, "maxFiles": 1})
        found, ends = [lines], [end]
        next_page = {name: value for name, value in body.items() if name not in ("refreshToken", "includeRefreshToken")}
        while end and end.get("nextPageToken"):
            asked = {**next_page, "maxFiles": 1, "pageToken": end["nextPageToken"]}
            following, lines, end = self.lines(path, asked)
            assert following.headers["delta-table-version"] == answer.headers["delta-table-version"]
            assert following.body.splitlines()[:2] == answer.body.splitlines()[:2]
            found.append(lines)
            ends.append(end)
        return found, ends


def ids(lines: list[Any]) -> list[str]:
    return [line["file"]["id"] for line in lines[2:]]


# --- Tables ----------------------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("more", ["", "?version=2", "?timestamp=2999-01-01T00%3A00%3A00Z"])
def test_metadata_is_two_lines(shared: Shared, form: str, more: str) -> None:
    """More lines than two are an error, so it is never asked with an end."""
    if "timestamp" in more:
        at = shared.lines(f"{LOG}/query", body={"version": 2})[-1]["file"]["timestamp"]
        more = f"?timestamp={_instant(at)}"
    answer, lines, end = Spark(shared, form, wants_end=True).lines(f"{RATES}/metadata{more}", wants_end=False)
    assert len(lines) == 2
    assert end is None
    assert answer.headers["delta-table-version"] == ("2" if more else "3")
    protocol, table = lines[0]["protocol"], lines[1]["metaData"]
    if form == "delta":
        protocol, table = protocol["deltaProtocol"], table["deltaMetadata"]
        assert isinstance(protocol["minWriterVersion"], int)
        assert protocol["readerFeatures"] == ["deletionVectors"]
        # Delta's own library refuses a table whose configuration switches on what its protocol does not list.
        assert set(protocol["writerFeatures"]) == {"deletionVectors", "changeDataFeed"}
        assert set(table["configuration"]) == {"delta.enableDeletionVectors", "delta.enableChangeDataFeed"}
    assert protocol["minReaderVersion"] == (3 if form == "delta" else 1)
    assert table["format"]["provider"] == "parquet"
    assert json.loads(table["schemaString"])["type"] == "struct"


@FORMS
@pytest.mark.parametrize("wants_end", [False, True])
def test_a_load_is_refreshed_before_its_urls_end(shared: Shared, form: str, wants_end: bool) -> None:
    spark = Spark(shared, form, wants_end=wants_end)
    _, lines, end = spark.lines(f"{RATES}/query", LATEST)
    assert end is not None
    again, refreshed, next_end = spark.lines(f"{RATES}/query", {**LATEST, "refreshToken": end["refreshToken"]})
    assert ids(refreshed) == ids(lines)
    assert refreshed[:2] == lines[:2]
    assert next_end is not None
    assert next_end["refreshToken"]  # it is asked for once more before those end
    assert again.headers["delta-table-version"] == "3"
    assert end["minUrlExpirationTimestamp"] == min(line["file"]["expirationTimestamp"] for line in lines[2:])


@FORMS
@pytest.mark.parametrize("wants_end", [False, True])
def test_a_load_comes_in_pages(shared: Shared, form: str, wants_end: bool) -> None:
    """The pages after the first one are asked for without the wish for a refresh token."""
    spark = Spark(shared, form, wants_end=wants_end)
    pages, ends = spark.pages(f"{LOG}/query", LATEST)
    whole = spark.lines(f"{LOG}/query", LATEST)[1]
    assert [name for page in pages for name in ids(page)] == ids(whole)
    assert len(pages) == 3
    assert ends[0] is not None
    refreshed = spark.lines(f"{LOG}/query", {**LATEST, "refreshToken": ends[0]["refreshToken"]})[1]
    assert ids(refreshed) == ids(whole)


@pytest.mark.parametrize("number", [0, 1, 2, 3])
@FORMS
def test_a_version_is_the_one_that_was_asked_for(shared: Shared, form: str, number: int) -> None:
    answer, lines, end = Spark(shared, form).lines(f"{RATES}/query", {**OF_A_VERSION, "version": number})
    assert answer.headers["delta-table-version"] == str(number)
    assert end is None
    assert all("file" in line for line in lines[2:])


def test_a_condition_and_a_limit(shared: Shared) -> None:
    column = {"op": "column", "name": "n", "valueType": "long"}
    tree = {
        "op": "and",
        "children": [
            {"op": "not", "children": [{"op": "isNull", "children": [column]}]},
            {"op": "greaterThan", "children": [column, {"op": "literal", "value": "4", "valueType": "long"}]},
        ],
    }
    body = {**LATEST, "predicateHints": ["n IS NOT NULL", "n > 4L"], "jsonPredicateHints": json.dumps(tree)}
    _, lines, _ = Spark(shared, "parquet").lines(f"{LOG}/query", body)
    assert [row["n"] for row in table_of(shared, lines).to_pylist()] == [
        2,
        5,
    ]  # what is taken back, and what it becomes
    _, lines, _ = Spark(shared, "parquet").lines(f"{LOG}/query", {**LATEST, "limitHint": 1})
    assert len(lines) == 3


def test_files_are_had_by_ranges(shared: Shared) -> None:
    """`RandomAccessHttpInputStream` asks for a part, from where it is to the end, and needs 206."""
    (_, lines, _) = Spark(shared, "parquet").lines(f"{LOG}/query", LATEST)
    url, size = lines[2]["file"]["url"], lines[2]["file"]["size"]
    assert "=" in url.partition("?")[2]
    for start, end in ((0, size - 1), (4, size - 1), (size - 8, size - 1), (4, 7)):
        part = shared.ask(url, None, range=f"bytes={start}-{end}", user_agent=AGENT)
        assert part.status == 206
        assert len(part.body) == end - start + 1 == int(part.headers["content-length"])


# --- Streams and changes ---------------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("wants_end", [False, True])
def test_a_stream_goes_on_where_it_was(shared: Shared, form: str, wants_end: bool) -> None:
    """The connector asks for the version, then for the files of some versions, as parquet ids where it has them."""
    spark = Spark(shared, form, wants_end=wants_end, agent=STREAMING)
    version = spark.ask(f"{LOG}/version", wants_end=False)
    assert (version.headers["delta-table-version"], version.body) == ("3", b"")
    seen = []
    for start, end in ((0, 1), (2, 2), (3, 3)):
        body: dict[str, Any] = {"predicateHints": [], "startingVersion": start, "endingVersion": end}
        if form != "parquet":
            body["includeHistoricalProtocol"] = True
        answer, lines, _ = spark.lines(f"{LOG}/query", body, fileidhash="parquet")
        assert answer.headers["delta-table-version"] == str(start)
        for line in lines[2:]:
            ((kind, action),) = line.items()
            assert kind in (("file",) if form == "delta" else ("add", "remove", "metaData"))
            assert start <= action["version"] <= end
            assert isinstance(action["timestamp"], int)
            seen.append(action["version"])
    assert seen == [1, 2, 3]


@FORMS
@pytest.mark.parametrize("wants_end", [False, True])
def test_changes(shared: Shared, form: str, wants_end: bool) -> None:
    spark = Spark(shared, form, wants_end=wants_end)
    asked = "startingVersion=1&endingVersion=3&includeHistoricalMetadata=true"
    if form != "parquet":
        asked += "&includeHistoricalProtocol=true"
    for page in ("", "&maxFiles=100000"):
        answer, lines, end = spark.lines(f"{RATES}/changes?{asked}{page}")
        assert answer.headers["delta-table-version"] == "1"
        assert (end is not None) == wants_end
        kinds = {next(iter(line)) for line in lines[2:]}
        assert kinds <= ({"file", "metaData"} if form == "delta" else {"add", "cdf", "remove", "metaData"})
        for line in lines[2:]:
            ((kind, action),) = line.items()
            assert kind == "metaData" or {"version", "timestamp", "id", "size", "expirationTimestamp"} <= set(action)
            if form == "delta":
                ((name, inner),) = action["deltaSingleAction"].items()
                assert name in ("cdc", "add", "remove")
                assert {"path", "partitionValues", "size", "dataChange"} <= set(inner)


def test_lists_are_asked_for_page_by_page(shared: Shared) -> None:
    spark = Spark(shared, "parquet")
    assert [one["name"] for one in spark.ask("shares").json["items"]] == ["fx"]
    tables = spark.ask("shares/fx/all-tables").json
    assert {(one["name"], one["schema"], one["share"]) for one in tables["items"]} >= {("log", "main", "fx")}
    assert b"\n" not in spark.ask("shares/fx/all-tables").body


def test_what_it_reads_is_the_table(shared: Shared) -> None:
    _, lines, _ = Spark(shared, "parquet").lines(f"{RATES}/query", LATEST)
    assert state_of(table_of(shared, lines)) == {"EUR": (1.75, 3), "GBP": (0.5, 4), "USD": (None, 5)}


def _instant(millis: int) -> str:
    from urllib.parse import quote

    from odfpy.data.timestamp import Timestamp

    return quote(str(Timestamp(millis * 1_000_000)))
