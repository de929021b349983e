"""Lines of responses, in both formats (Delta Sharing protocol, "API Response Actions")."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from odfpy.sharing.files.maker import ServedFile
from odfpy.sharing.files.vectors import FEATURE
from odfpy.sharing.tables.contract import ChangeKind, TableVersion

_OLD_READERS: Final = {"minReaderVersion": 1}
_TIMES: Final = "timestampNtz"
_CHANGES: Final = "changeDataFeed"


class ResponseFormat(Enum):
    """The response formats of the protocol."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class TableInfo:
    """The contents of the metadata line of a response.

    Attributes:
        id: UUID of the table.
        name: its name.
        description: human-readable description.
        schema: JSON of its columns.
        partition_columns: names of the columns whose values are not in files.
        has_changes: whether it has a change data feed.
        has_vectors: whether files may have deletion vectors, for clients that support them.
    """

    id: str
    name: str
    description: str
    schema: str
    partition_columns: Sequence[str] = ()
    has_changes: bool = True
    has_vectors: bool = False

    @property
    def features(self) -> list[str]:
        """Return the names of the reader features that the table requires."""
        is_needed = {_TIMES: '"timestamp_ntz"' in self.schema, FEATURE: self.has_vectors}
        return [name for name, needed in is_needed.items() if needed]


def line(tree: Mapping[str, Any]) -> bytes:
    """Format a tree as a line of NDJSON."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def protocol(form: ResponseFormat, info: TableInfo) -> dict[str, Any]:
    """Return the protocol line, which is the first."""
    if form is ResponseFormat.PARQUET:
        return {"protocol": _OLD_READERS}
    if info.features:
        # A table that lists features must list those enabled by its configuration: Spark rejects others.
        writer = [*info.features, *([_CHANGES] if info.has_changes else [])]
        features = {"readerFeatures": info.features, "writerFeatures": writer}
        return {"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}}
    return {"protocol": {"deltaProtocol": {**_OLD_READERS, "minWriterVersion": 4 if info.has_changes else 2}}}


def metadata(form: ResponseFormat, info: TableInfo, version: TableVersion | None = None) -> dict[str, Any]:
    """Return the metadata line, which is the second, or that of an earlier version in a feed.

    Args:
        form: format of the response.
        info: the table.
        version: its version, if the request named one.
    """
    configuration = {"enableChangeDataFeed": "true"} if info.has_changes else {}
    if form is ResponseFormat.DELTA:
        configuration |= {"enableDeletionVectors": "true"} if info.has_vectors else {}
        # The Delta log has this name for the property of change data feeds.
        configuration = {f"delta.{name}": value for name, value in configuration.items()}
    table = {
        "id": info.id,
        "name": info.name,
        **({"description": info.description} if info.description else {}),
        "format": {"provider": "parquet", **({"options": {}} if form is ResponseFormat.DELTA else {})},
        "schemaString": info.schema,
        "partitionColumns": list(info.partition_columns),
        "configuration": configuration,
    }
    of_version = {} if version is None else {"version": version.number}
    if form is ResponseFormat.PARQUET:
        return {"metaData": {**table, **of_version, "accessModes": ["url"]}}
    return {"metaData": {"deltaMetadata": table, **of_version, "accessModes": ["url"]}}


@dataclass(frozen=True, slots=True)
class FileAction:
    """A file in a response.

    Attributes:
        file: the file.
        url: URL of its content.
        expires: expiry of the URL, in seconds since the epoch.
        version: version that it belongs to.
        partition_values: values of the columns that are not in it.
        stats: its statistics, None for none.
    """

    file: ServedFile
    url: str
    expires: int
    version: TableVersion
    partition_values: Mapping[str, str | None]
    stats: Mapping[str, Any] | None

    @property
    def num_rows(self) -> int:
        """Return the number of rows that a client gets; 0 if unknown."""
        count = int((self.stats or {}).get("numRecords", 0))
        return count if self.file.vector is None else count - int(self.file.vector["cardinality"])

    def of_table(self, form: ResponseFormat, *, with_version: bool) -> dict[str, Any]:
        """Return the line for a file of a version.

        Args:
            form: format of the response.
            with_version: whether the request named a version or a time.
        """
        if form is ResponseFormat.DELTA:
            return {"file": self._wrapped(ChangeKind.ADDED, with_version=with_version)}
        more = {"version": self.version.number, "timestamp": self.version.time.millis} if with_version else {}
        return {"file": {**self._plain(), **self._stats(), **more}}

    def of_feed(self, form: ResponseFormat, kind: ChangeKind) -> dict[str, Any]:
        """Return the line for a file of a change data feed.

        Args:
            form: format of the response.
            kind: kind of change of its rows.
        """
        if form is ResponseFormat.DELTA:
            return {"file": self._wrapped(kind, with_version=True)}
        more = {"version": self.version.number, "timestamp": self.version.time.millis}
        return {kind.value: {**self._plain(), **(self._stats() if kind is ChangeKind.ADDED else {}), **more}}

    def _plain(self) -> dict[str, Any]:
        return {
            "url": self.url,
            "id": self.file.id,
            "partitionValues": dict(self.partition_values),
            "size": self.file.size,
            "expirationTimestamp": self.expires * 1000,
        }

    def _stats(self) -> dict[str, Any]:
        return {} if self.stats is None else {"stats": json.dumps(self.stats, separators=(",", ":"))}

    def _wrapped(self, kind: ChangeKind, *, with_version: bool) -> dict[str, Any]:
        action: dict[str, Any] = {
            "path": self.url,
            "partitionValues": dict(self.partition_values),
            "size": self.file.size,
        }
        if kind is ChangeKind.ADDED:
            action |= {"modificationTime": self.version.time.millis, "dataChange": True, **self._stats()}
            action |= {} if self.file.vector is None else {"deletionVector": dict(self.file.vector)}
        elif kind is ChangeKind.REMOVED:
            action |= {"deletionTimestamp": self.version.time.millis, "dataChange": True, "extendedFileMetadata": True}
        else:
            action |= {"dataChange": False}
        name = {ChangeKind.BY_ROW: "cdc"}.get(kind, kind.value)
        more = {"version": self.version.number, "timestamp": self.version.time.millis} if with_version else {}
        wrapped = {"id": self.file.id, "size": self.file.size, "expirationTimestamp": self.expires * 1000, **more}
        return {**wrapped, "deltaSingleAction": {name: action}}


def end_of_stream(
    *, refresh: str | None = None, page: str | None = None, expires: int | None = None, problem: str | None = None
) -> dict[str, Any]:
    """Return the last line, for clients that requested one, or that must be notified of an error.

    Args:
        refresh: token for new URLs of the same files.
        page: token for the next page.
        expires: expiry of all URLs, in seconds since the epoch.
        problem: the error, if the response is incomplete.
    """
    fields = {
        "refreshToken": refresh,
        "nextPageToken": page,
        "minUrlExpirationTimestamp": None if expires is None else expires * 1000,
        "errorMessage": problem,
    }
    return {"endStreamAction": {name: value for name, value in fields.items() if value is not None}}
