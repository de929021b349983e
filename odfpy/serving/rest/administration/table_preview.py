"""`/platform/recipients/{name}/tables`: the shared tables as a recipient or user sees them.

The same code decides what is visible as for the recipient's own requests. Recipients are not notified, and their token
is not needed; in the audit log, the access is the admin's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from contextlib import closing
from typing import Annotated, Any, Final

import pyarrow as pa
from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, ResultTooLarge, UsageError
from odfpy.query.wire.layouts import DataFormat, laid_out
from odfpy.serving.callers.access import AnyCaller
from odfpy.serving.http.json_responses import limits_of
from odfpy.serving.rest.administration.admin import Admin, AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import (
    PAGED,
    Page,
    SchemaName,
    ShareName,
    TableName,
    like,
    refusals,
)
from odfpy.serving.rest.administration.grants import words_of
from odfpy.serving.rest.administration.principals import KIND, APrincipal
from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.callers import SharingCaller
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.question import TableQuestion, question_of
from odfpy.sharing.decisions import CallerAccess
from odfpy.sharing.files.schema import schema_string
from odfpy.sharing.files.visible_rows import num_visible_rows, visible_rows
from odfpy.sharing.model import Principal, PrincipalKind, SharedTable
from odfpy.sharing.names import SharePath

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_PATIENCE: Final = 2.0
"""Seconds in which the rows of the tables of a page are counted; those that are left are not."""

_SEEN = {
    "path": "sales.eu.orders",
    "comment": "",
    "columns": [{"name": "day", "type": "date"}, {"name": "total", "type": "decimal(12,2)"}],
    "words": ["columns day, total of rows where country = recipient('country'), by the group partners"],
    "isWhole": False,
    "numRows": 310,
    "problem": None,
}


class SeenColumnModel(BaseModel):
    """A column as clients see it."""

    model_config = like({"name": "day", "type": "date"})

    name: str
    type: Annotated[str, Field(description="The type in Delta tables.")]


class SeenTableModel(BaseModel):
    """A shared table as a principal sees it."""

    model_config = like(_SEEN)

    path: str
    comment: str
    columns: list[SeenColumnModel]
    words: Annotated[list[str], Field(description="The grants that give access to it.")]
    isWhole: Annotated[bool, Field(description="Whether all columns and rows are visible.")]  # noqa: N815
    numRows: Annotated[  # noqa: N815
        int | None,
        Field(description="Number of visible rows; null if counting takes long, until the table is requested."),
    ] = None
    problem: Annotated[str | None, Field(description="Why it cannot be read now.")] = None


class PreviewModel(SeenTableModel):
    """The first rows of a shared table as a principal sees them: a preview for admins."""

    model_config = like(
        {**_SEEN, "isPreview": True, "seenAs": "acme", "isDisabled": False, "rows": [["2026-01-01", "9.90"]]}
    )

    isPreview: bool = True  # noqa: N815
    seenAs: str  # noqa: N815
    isDisabled: Annotated[bool, Field(description="Whether they are disabled, and so cannot read anything now.")]  # noqa: N815
    rows: Annotated[list[list[Any]], Field(description="Cells in the order of the columns.")]


def _few(
    search: Annotated[str, Query(max_length=200, description="Part of a path or comment, case-insensitive.")] = "",
    limit: Annotated[int, Query(ge=1, le=100, description="Maximum number of tables.")] = 20,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Number of tables to skip.")] = 0,
) -> Page:
    return Page(search.lower(), limit, offset)


@router.get(f"/{KIND}/{{name}}/tables", responses={**PAGED, **refusals(400, 404)})
def tables_seen(
    request: Request,
    response: Response,
    admin: AnAdmin,
    principal: APrincipal,
    page: Annotated[Page, Depends(_few)],
) -> list[SeenTableModel]:
    """List the shared tables that a recipient or user sees, with columns and numbers of rows; without their token."""
    reach = _reach(admin, principal)
    note(request.scope, action=f"see as {principal.name}")
    visible = [table for table in admin.sharing.shares.tables(within=reach.few_paths) if reach.view(table) is not None]
    wanted = page.of(response, visible, lambda shared_table: (str(shared_table.path), shared_table.comment))
    last = time.monotonic() + _PATIENCE
    seen = [_described(request, principal, reach, shared_table, last) for shared_table in wanted]
    note(request.scope, path=None)  # each table was noted; the request is about all of them
    return seen


@router.get(f"/{KIND}/{{name}}/tables/{{share}}/{{schema}}/{{table}}", responses=refusals(400, 404, 429, 503))
async def table_seen(
    request: Request,
    caller: AnyCaller,
    admin: AnAdmin,
    principal: APrincipal,
    share: ShareName,
    schema: SchemaName,
    table: TableName,
    limit: Annotated[int, Query(ge=0, le=1000, description="Maximum number of rows.")] = 20,
) -> PreviewModel:
    """Return the first rows of a shared table as a recipient or user sees them, without their token."""
    path = SharePath(share, schema, table)
    note(request.scope, action=f"see as {principal.name}", path=str(path))

    def work(control: CancellationToken) -> PreviewModel:
        reach = _reach(admin, principal)
        question = _question(request, principal, reach, path)
        columns = question.schema(question.table.latest)
        rows = _first_rows(question, columns, limit, control)
        limits = limits_of(request)
        limits.check_values(rows)
        if limits.bytes is not None and rows.nbytes > limits.bytes:
            raise ResultTooLarge("These rows are too large for an answer", hint="Ask for fewer of them.")
        return PreviewModel(
            **_facts(question, columns, _words(principal, reach, question.shared)),
            numRows=_num_rows(question, control),
            seenAs=principal.name,
            isDisabled=principal.is_disabled,
            rows=laid_out(rows, DataFormat.ARRAY_OF_ARRAYS),
        )

    preview: PreviewModel = await request.app.state.gate.run(request, caller, work)
    return preview


def _reach(admin: Admin, principal: Principal) -> CallerAccess:
    if principal.kind is PrincipalKind.GROUP:
        raise UsageError(f"{principal.name} is a group, and reads nothing itself", hint="Look as one of its members.")
    return admin.sharing.reach(principal)


def _question(request: Request, principal: Principal, reach: CallerAccess, path: SharePath) -> TableQuestion:
    """Build the question as if the recipient had sent it, so that the same permissions apply."""
    return question_of(request, SharingCaller(principal.name, reach, principal.id), path, None)


def _described(
    request: Request, principal: Principal, reach: CallerAccess, table: SharedTable, last: float
) -> SeenTableModel:
    words = _words(principal, reach, table)
    try:
        question = _question(request, principal, reach, table.path)
        seen = SeenTableModel(**_facts(question, question.schema(question.table.latest), words))
        if time.monotonic() < last:
            seen.numRows = _num_rows(question, None, last)
    except (OdfError, SharingError) as error:
        return SeenTableModel(
            path=str(table.path), comment=table.comment, columns=[], words=words, isWhole=False, problem=error.message
        )
    return seen


def _facts(question: TableQuestion, columns: pa.Schema, words: list[str]) -> dict[str, Any]:
    fields = json.loads(schema_string(columns))["fields"]
    return {
        "path": str(question.shared.path),
        "comment": question.shared.comment,
        "columns": [SeenColumnModel(name=field["name"], type=_type(field["type"])) for field in fields],
        "words": words,
        "isWhole": question.view.is_all,
    }


def _type(kind: Any) -> str:
    return kind if isinstance(kind, str) else json.dumps(kind, ensure_ascii=False)


def _words(principal: Principal, reach: CallerAccess, table: SharedTable) -> list[str]:
    """Describe the grants by which a principal sees a table."""
    return [
        words_of(grant) + ("" if grant.principal == principal.name else f", by the group {grant.principal}")
        for grant in reach.grants_on(table)
    ]


def _num_rows(question: TableQuestion, control: CancellationToken | None, last: float | None = None) -> int | None:
    """Count the visible rows; None if that takes until the deadline."""
    count = 0
    for file in question.table.files(question.table.latest):
        if control is not None:
            control.check()
        if last is not None and time.monotonic() > last:
            return None
        count += num_visible_rows(file, question.view)
    return count


def _first_rows(question: TableQuestion, columns: pa.Schema, limit: int, control: CancellationToken) -> pa.Table:
    first: list[pa.RecordBatch] = []
    left = limit
    with closing(_batches(question, columns, control)) as batches:
        while left > 0 and (batch := next(batches, None)) is not None:
            first.append(batch.slice(0, left))
            left -= first[-1].num_rows
    return pa.Table.from_batches(first, columns)


def _batches(
    question: TableQuestion, columns: pa.Schema, control: CancellationToken
) -> Generator[pa.RecordBatch, None, None]:
    for file in question.table.files(question.table.latest):
        for batch in visible_rows(file, columns, question.view):
            control.check()
            yield batch
