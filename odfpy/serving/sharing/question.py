"""A question about a shared table: who asks, what they may see of it, and the lines of the answer."""

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
        state: of the application.
        caller: who asks.
        shared: the table as it is shared.
        table: the same, opened.
        view: what the caller sees.
        can: what the client can read.
        id_hash: the scheme of ids that the client asks for.
    """

    request: Request
    state: SharingState
    caller: SharingCaller
    shared: SharedTable
    table: ReadableTable
    view: View
    can: Capabilities
    id_hash: str | None = None

    @cached_property
    def urls(self) -> FileUrls:
        """The urls of this answer, which all end at the same time."""
        return FileUrls(self.state, self.request, self.caller, self.shared, self.view)

    def schema(self, version: TableVersion) -> pa.Schema:
        """The columns that the caller sees, as clients know them.

        Raises:
            SharingError: they see none.
            SchemaError: one of them cannot be shared.
        """
        whole = self.table.schema(version)
        names = self.view.columns(whole.names)
        if not self.view.has_all_rows(whole.names):  # gaps between offsets would tell of the rows that are hidden
            row_dependent = self.table.row_dependent_columns
            names = [name for name in names if name not in row_dependent or self.view.names(name)]
        if whole.names and not names:
            raise missing()
        return shared_schema(pa.schema([whole.field(name) for name in names]))

    def info(self, schema: pa.Schema, *, is_snapshot: bool = False) -> TableInfo:
        """Return what the metadata line says.

        Args:
            schema: the columns that show.
            is_snapshot: whether the answer is about the files of a version, and not a feed.
        """
        partitions = [name for name in self.table.partition_columns if name in schema.names and self.view.is_all]
        name = self.shared.path.table or ""
        description = self.shared.comment or (self.table.description if self.view.is_all else "")
        changes, schema_text = self.table.has_changes, schema_string(schema)
        knows_vectors = FEATURE.lower() in self.can.reader_features and self.view.is_all
        has_vectors = is_snapshot and knows_vectors and self.table.may_have_deleted_rows
        return TableInfo(self.shared.id, name, description, schema_text, partitions, changes, has_vectors)

    def headers(self, version: TableVersion, form: ResponseFormat) -> dict[str, str]:
        """Return the headers of an answer in some format, and take down the version."""
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
        """The file as this caller gets it; None if nothing of it shows, or no row of it can matter.

        Args:
            file: a file of the table.
            schema: the columns of the answer.
            hints: conditions that the client will apply.
            change: the change that the file is part of, in a feed.
            has_vectors: whether rows that do not count may be left to the client.
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
        """The `action` of each file, in order; files that are to be made are made several at once.

        Args:
            files: files of the table.
            schema: the columns of the answer.
            hints: conditions that the client will apply.
            has_vectors: whether rows that do not count may be left to the client.
            is_limited: whether perhaps not all are taken.
        """

        def work(file: TableFile) -> FileAction | None:
            return self.action(file, schema, hints, has_vectors=has_vectors)

        if is_limited:
            return map(work, files)
        return self.state.ahead.map(work, files, lambda file: self._is_to_be_made(file, schema))

    def _is_to_be_made(self, file: TableFile, schema: pa.Schema) -> bool:
        if self.view.is_all and file.live is None:
            return False  # but for rare types of columns
        return not self.state.files.has(file, self._stored(file, schema), self.view)

    def _stored(self, file: TableFile, schema: pa.Schema) -> pa.Schema:
        """The columns that are in a file as it goes out."""
        partition = self._partition(file, schema)
        return pa.schema([field for field in schema if field.name not in partition])

    def _partition(self, file: TableFile, schema: pa.Schema) -> dict[str, str | None]:
        """The values that are beside a file; in those made for a view, they are a column, since cells may be hidden."""
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
    """The question of a request.

    Args:
        request: the request.
        caller: who asks.
        path: of the table.
        capabilities: the header of that name.
        id_hash: the header `fileidhash`.

    Raises:
        SharingError: 404, nothing of that name is there for the caller; 400, a header makes no sense.
        CannotShare: the table is not there any more.
    """
    state = state_of(request)
    can = Capabilities.parse(capabilities)
    if id_hash is not None and id_hash.lower() not in _ID_SCHEMES:
        raise SharingError(400, "fileidhash is parquet or delta")
    shared = state.sharing.shares.find_table(path)  # the same work whether it is missing or hidden
    view = None if shared is None else caller.reach.view(shared)
    if shared is None or view is None:
        raise missing()
    note(request.scope, path=str(shared.path))
    table = state.tables.open(shared.source)
    is_dataset = shared.source.kind is SourceKind.DATASET
    if is_dataset and not view.is_all and not view.has_all_rows(table.schema(table.latest).names):
        table = state.visible.get((table, view.identity), partial(_visible, state, table, view))
    return TableQuestion(request, state, caller, shared, table, view, can, id_hash.lower() if id_hash else None)


def _visible(state: SharingState, table: ReadableTable, view: View) -> VisibleTable:
    return VisibleTable(table, lambda file: state.shown.shows(file, view))
