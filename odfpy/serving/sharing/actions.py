"""Lines of answers, in both formats (Delta Sharing protocol, "API Response Actions")."""

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
    """The formats of answers."""

    PARQUET = "parquet"
    DELTA = "delta"


@dataclass(frozen=True, slots=True)
class TableInfo:
    """The contents of the metadata line of an answer.

    Attributes:
        id: UUID of the table.
        name: its name.
        description: for people.
        schema: the JSON of its columns.
        partition_columns: names of those that are not in files.
        has_changes: whether it has a change feed.
        has_vectors: whether files may have deletion vectors, for clients that know them.
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
        """Names of the features that readers of Delta tables must have."""
        is_needed = {_TIMES: '"timestamp_ntz"' in self.schema, FEATURE: self.has_vectors}
        return [name for name, needed in is_needed.items() if needed]


def line(tree: Mapping[str, Any]) -> bytes:
    """A tree as a line of ndjson."""
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def protocol(form: ResponseFormat, info: TableInfo) -> dict[str, Any]:
    """The first line."""
    if form is ResponseFormat.PARQUET:
        return {"protocol": _OLD_READERS}
    if info.features:
        # A table that lists features at all must list what its configuration has switched on: Spark refuses others.
        writer = [*info.features, *([_CHANGES] if info.has_changes else [])]
        features = {"readerFeatures": info.features, "writerFeatures": writer}
        return {"protocol": {"deltaProtocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}}
    return {"protocol": {"deltaProtocol": {**_OLD_READERS, "minWriterVersion": 4 if info.has_changes else 2}}}


def metadata(form: ResponseFormat, info: TableInfo, version: TableVersion | None = None) -> dict[str, Any]:
    """The second line, or that of an earlier version in a feed.

    Args:
        form: format of the answer.
        info: the table.
        version: that it is of, where the question named one.
    """
    configuration = {"enableChangeDataFeed": "true"} if info.has_changes else {}
    if form is ResponseFormat.DELTA:
        configuration |= {"enableDeletionVectors": "true"} if info.has_vectors else {}
        # Change feeds of the Delta log have this name for the switch.
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
    """A file in an answer.

    Attributes:
        file: the file.
        url: where it can be had.
        expires: seconds since 1970 until which.
        version: that it is of.
        partition_values: of columns that are not in it.
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
        """Return how many rows a client gets; 0 where nobody knows."""
        count = int((self.stats or {}).get("numRecords", 0))
        return count if self.file.vector is None else count - int(self.file.vector["cardinality"])

    def of_table(self, form: ResponseFormat, *, with_version: bool) -> dict[str, Any]:
        """Return the line for a file of a version.

        Args:
            form: format of the answer.
            with_version: whether the question named a version or a time.
        """
        if form is ResponseFormat.DELTA:
            return {"file": self._wrapped(ChangeKind.ADDED, with_version=with_version)}
        more = {"version": self.version.number, "timestamp": self.version.time.millis} if with_version else {}
        return {"file": {**self._plain(), **self._stats(), **more}}

    def of_feed(self, form: ResponseFormat, kind: ChangeKind) -> dict[str, Any]:
        """Return the line for a file of a feed of changes.

        Args:
            form: format of the answer.
            kind: what has become of its rows.
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
    """The last line, for whoever has asked for one, or must be told something.

    Args:
        refresh: token for new urls of the same files.
        page: token for the files that follow.
        expires: seconds since 1970 until which all urls are good.
        problem: why there is no more, where something has failed.
    """
    found = {
        "refreshToken": refresh,
        "nextPageToken": page,
        "minUrlExpirationTimestamp": None if expires is None else expires * 1000,
        "errorMessage": problem,
    }
    return {"endStreamAction": {name: value for name, value in found.items() if value is not None}}
