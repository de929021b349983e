"""A request for a shared table: the caller, what they may see of it, and the lines of the response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import pyarrow as pa
from starlette.requests import Request

from odfpy.serving.sharing.actions import FileAction, ResponseFormat, TableInfo
from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.callers import SharingCaller
from odfpy.serving.sharing.capabilities import HEADER, Capabilities
from odfpy.serving.sharing.errors import SharingError, missing
from odfpy.serving.sharing.files import FileUrls
from odfpy.serving.sharing.state import SharingState, state_of
from odfpy.sharing.decisions import View
from odfpy.sharing.files.schema import schema_string, shared_schema
from odfpy.sharing.files.statistics import file_statistics
from odfpy.sharing.files.vectors import FEATURE
from odfpy.sharing.hints import Hint, may_have_rows
from odfpy.sharing.model import SharedTable, SourceKind
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.contract import ReadableTable, TableChange, TableFile, TableVersion
from odfpy.sharing.tables.visible import VisibleTable

_BLOCK: Final = "X-odf-block-hash"
_ID_SCHEMES: Final = ("parquet", "delta")


@dataclass(frozen=True)
class TableQuestion:
    """A request for a shared table of which the caller may read at least some cells.

    Attributes:
        request: the request.
        state: state of the application.
        caller: who makes the request.
        shared: the table as it is shared.
        table: the same table, opened.
        view: the part that the caller may see.
        granted: the same for any table: grants that show nothing of this one are included.
        can: capabilities of the client.
        id_hash: the scheme of file ids that the client has requested.
    """

    request: Request
    state: SharingState
    caller: SharingCaller
    shared: SharedTable
    table: ReadableTable
    view: View
    granted: View
    can: Capabilities
    id_hash: str | None = None

    @cached_property
    def urls(self) -> FileUrls:
        """Return the URL factory of this response; its URLs expire at the same time."""
        return FileUrls(self.state, self.request, self.caller, self.shared, self.granted)

    def schema(self, version: TableVersion) -> pa.Schema:
        """Return the columns that the caller may see, in the protocol's types.

        Raises:
            SharingError: they may see none.
            SchemaError: one of them cannot be shared.
        """
        full_schema = self.table.schema(version)
        names = self.view.columns(full_schema.names)
        if not self.view.has_all_rows:  # gaps between offsets would reveal hidden rows
            row_dependent = self.table.row_dependent_columns
            names = [name for name in names if name not in row_dependent or self.view.names(name)]
        if full_schema.names and not names:
            raise missing()
        return shared_schema(pa.schema([full_schema.field(name) for name in names]))

    def info(self, schema: pa.Schema, *, is_snapshot: bool = False) -> TableInfo:
        """Return the contents of the metadata line.

        Args:
            schema: the visible columns.
            is_snapshot: whether the response has the files of a version, not a feed.
        """
        partitions = [name for name in self.table.partition_columns if name in schema.names and self.view.is_all]
        name = self.shared.path.table or ""
        description = self.shared.comment or (self.table.description if self.view.is_all else "")
        changes, schema_text = self.table.has_changes, schema_string(schema)
        knows_vectors = FEATURE.lower() in self.can.reader_features and self.view.is_all
        has_vectors = is_snapshot and knows_vectors and self.table.may_have_deleted_rows
        return TableInfo(self.shared.id, name, description, schema_text, partitions, changes, has_vectors)

    def headers(self, version: TableVersion, form: ResponseFormat) -> dict[str, str]:
        """Return the headers of a response in a format, and note the version for the audit log."""
        note(self.request.scope, version=version.number, block=version.block)
        block = version.block if self.view.is_all else None
        return {
            "Delta-Table-Version": str(version.number),
            HEADER: self.can.answer(form),
            **({_BLOCK: block} if block is not None else {}),
            **({"fileidhash": self.id_hash} if self.id_hash is not None else {}),
            "Cache-Control": "private, no-store",
        }

    def action(
        self,
        file: TableFile,
        schema: pa.Schema,
        hints: list[Hint],
        change: TableChange | None = None,
        *,
        has_vectors: bool = False,
    ) -> FileAction | None:
        """Return a file for this caller; None if nothing in it is visible, or no row of it can match.

        Args:
            file: a file of the table.
            schema: columns of the response.
            hints: conditions that the client will apply.
            change: the change that the file belongs to, in a feed.
            has_vectors: whether superseded rows may be marked by deletion vectors for the client.
        """
        if hints and file.stats is not None and self.view.is_all and not may_have_rows(hints, file.stats):
            return None
        stored = self._stored(file, schema)
        served = self.state.files.served(file, stored, self.view, change, has_vectors=has_vectors)
        if served is None:
            return None
        statistics: Mapping[str, Any] | None = file.stats if self.view.is_all and file.live is None else None
        if statistics is None:
            statistics = file_statistics(served.path, dict.fromkeys(schema.names))
        if hints and not may_have_rows(hints, statistics):
            return None
        return FileAction(
            served,
            self.urls.url_for(served, file.version.number),
            self.urls.expires,
            file.version,
            self._partition(file, schema),
            statistics if served.vector is None else {**statistics, "tightBounds": False},
        )

    def actions(
        self,
        files: Iterable[TableFile],
        schema: pa.Schema,
        hints: list[Hint],
        *,
        has_vectors: bool,
        is_limited: bool,
    ) -> Iterator[FileAction | None]:
        """Return the `action` of each file, in order; files that must be produced are produced concurrently.

        Args:
            files: files of the table.
            schema: columns of the response.
            hints: conditions that the client will apply.
            has_vectors: whether superseded rows may be marked by deletion vectors for the client.
            is_limited: whether perhaps not all files are consumed.
        """

        def work(file: TableFile) -> FileAction | None:
            return self.action(file, schema, hints, has_vectors=has_vectors)

        if is_limited:
            return map(work, files)
        return self.state.ahead.map(work, files, lambda file: self._is_to_be_made(file, schema))

    def _is_to_be_made(self, file: TableFile, schema: pa.Schema) -> bool:
        if self.view.is_all and file.live is None:
            return False  # except for rare types of columns
        return not self.state.files.has(file, self._stored(file, schema), self.view)

    def _stored(self, file: TableFile, schema: pa.Schema) -> pa.Schema:
        """Return the columns that are in the served file."""
        partition = self._partition(file, schema)
        return pa.schema([field for field in schema if field.name not in partition]) if partition else schema

    def _partition(self, file: TableFile, schema: pa.Schema) -> dict[str, str | None]:
        """Return the partition values next to a file; in files produced for a view they are columns, as cells may be
        hidden.
        """
        if not self.view.is_all:
            return {}
        return {name: value for name, value in file.partition_values.items() if name in schema.names}


def question_of(
    request: Request,
    caller: SharingCaller,
    path: SharePath,
    capabilities: str | None,
    id_hash: str | None = None,
) -> TableQuestion:
    """Build the question for a request.

    Args:
        request: the request.
        caller: the caller.
        path: path of the table.
        capabilities: the header of that name.
        id_hash: value of the header `fileidhash`.

    Raises:
        SharingError: 404, the caller may see no such table; 400, a header is invalid.
        CannotShare: the table no longer exists.
    """
    state = state_of(request)
    can = Capabilities.parse(capabilities)
    if id_hash is not None and id_hash.lower() not in _ID_SCHEMES:
        raise SharingError(400, "fileidhash is parquet or delta")
    shared = state.sharing.shares.find_table(path)  # the same work whether it is missing or hidden
    granted = None if shared is None else caller.reach.view(shared)
    if shared is None or granted is None:
        raise missing()
    note(request.scope, path=str(shared.path))
    table = state.tables.open(shared.source)
    view = granted if granted.is_all else _fitted(granted, table)
    if shared.source.kind is SourceKind.DATASET and not view.has_all_rows:
        table = state.visible.get((table, view.identity), partial(_visible, state, table, view))
    id_hash = id_hash.lower() if id_hash else None
    return TableQuestion(request, state, caller, shared, table, view, granted, can, id_hash)


def _fitted(granted: View, table: ReadableTable) -> View:
    """Return the view of a table; one without data may still get any columns.

    Raises:
        SharingError: 404, the grants show nothing of it.
    """
    names = table.schema(table.latest).names
    view = granted.fitted(names) if names else granted
    if view is None:
        raise missing()
    return view


def _visible(state: SharingState, table: ReadableTable, view: View) -> VisibleTable:
    return VisibleTable(table, lambda file: state.shown.shows(file, view))
