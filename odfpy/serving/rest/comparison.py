"""`/{dataset}/compare`: the rows in which a dataset differs between two points of its history."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy import __version__
from odfpy.coordinator.reading.compare import ComparedPage, Comparison, compare
from odfpy.coordinator.reading.projections import moment
from odfpy.engine.cancellation import CancellationToken
from odfpy.query.service import QueryService
from odfpy.serving.callers.access import AnyCaller, Readable, registry_of
from odfpy.serving.callers.resolver import CallerResolver
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.rest.models import HASH, NOT_MODIFIED, Rows, Skipped, answers, with_headers
from odfpy.serving.settings import ServeSettings

router = APIRouter(tags=["queries"])

_TAG: Final = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_LINK: Final = '<compare?old=f1620...&new=f1620...&skip=100&limit=100>; rel="next"'
_MOMENT: Final = "A system time, a block, a tag or a branch; `head` for now."


class MomentModel(BaseModel):
    """A version of a dataset."""

    name: Annotated[str, Field(description="The version, as requested.", examples=["v1"])]
    asAt: Annotated[  # noqa: N815
        str, Field(description="The time, or the block that the name currently refers to.", examples=[HASH])
    ]


class ColumnChangeModel(BaseModel):
    """A column that only one of the versions has, or that has another type there."""

    column: str
    old: Annotated[str | None, Field(description="Its type before; null if it did not exist.", examples=["int64"])]
    new: Annotated[str | None, Field(description="Its type after; null if it was removed.")]


class CountsModel(BaseModel):
    """Numbers of differences, by kind."""

    added: int
    removed: int
    changed: int


class RowChangeModel(BaseModel):
    """A row that was added, removed or changed, as in `odf diff -o json`."""

    change: Annotated[str, Field(description="added, removed or changed.", examples=["changed"])]
    count: Annotated[int, Field(description="Number of such rows, if rows have no key.")]
    key: dict[str, Any] | None
    old: dict[str, Any] | None
    new: dict[str, Any] | None


class ComparisonModel(BaseModel):
    """The differences between two versions of a dataset."""

    dataset: Annotated[str, Field(examples=["com.example.rates"])]
    old: MomentModel
    new: MomentModel
    key: Annotated[list[str], Field(description="Key columns; empty if whole rows are compared.")]
    columns: list[str]
    columnChanges: list[ColumnChangeModel]  # noqa: N815
    counts: CountsModel
    total: Annotated[int, Field(description="Number of differences on all pages.")]
    rows: list[RowChangeModel]


@router.get(
    "/compare",
    response_model=ComparisonModel,
    responses={**with_headers(ETag=_TAG, Link=_LINK), **NOT_MODIFIED, **answers(400, 401, 404, 422, 429, 503)},
)
async def compared(
    request: Request,
    caller: AnyCaller,
    dataset: Readable,
    old: Annotated[str, Query(max_length=200, description=_MOMENT)],
    new: Annotated[str, Query(max_length=200, description=_MOMENT)] = "head",
    key: Annotated[
        str, Query(max_length=10_000, description="Key columns, comma-separated; by default the primary key.")
    ] = "",
    skip: Skipped = 0,
    limit: Rows = 100,
) -> Response:
    """Return the rows that were added, removed or changed between two versions, as `odf diff` does. The header `Link`
    refers to the next page, of the same blocks.
    """
    state = request.app.state
    settings: ServeSettings = state.settings
    storage = registry_of(request).storage_of(dataset)
    columns = [column.strip() for column in key.split(",") if column.strip()]
    name, most = str(dataset.handle), min(limit, settings.max_rows)

    def work(control: CancellationToken) -> Response:
        places = [MomentModel(name=text, asAt=moment(storage, name, text)) for text in (old, new)]
        fixed = [place.asAt for place in places]
        tag = tag_of(__version__, "compare", str(dataset.state.head), fixed, columns, skip, most, [old, new])
        known = not_modified(request, tag)
        if known is not None:
            return known
        service = QueryService(CallerResolver(registry_of(request), state.reaches, caller), state.engines.get(caller))
        with compare(storage, service, name, fixed[0], fixed[1], columns, control) as comparison:
            page = comparison.page(skip, most, settings.max_answer)
        tree = {
            "dataset": name,
            "old": places[0].model_dump(),
            "new": places[1].model_dump(),
            **_tree(comparison, page),
        }
        return reply(request, tree, tag, _link(fixed, key, skip, most, page.total))

    response: Response = await state.gate.run(request, caller, work)
    return response


def _tree(comparison: Comparison, page: ComparedPage) -> dict[str, Any]:
    return {
        "key": list(comparison.key),
        "columns": list(comparison.columns),
        "columnChanges": [
            {"column": column_change.name, "old": column_change.old, "new": column_change.new}
            for column_change in comparison.column_changes
        ],
        "counts": {change.value: count for change, count in page.counts.items()},
        "total": page.total,
        "rows": [row.to_json() for row in page.rows],
    }


def _link(fixed: list[str], key: str, skip: int, limit: int, total: int) -> dict[str, str]:
    """Return the URL of the next page, if there is one."""
    if not limit or skip + limit >= total:
        return {}
    asked = {"old": fixed[0], "new": fixed[1], "skip": skip + limit, "limit": limit} | ({"key": key} if key else {})
    return {"Link": f'<compare?{urlencode(asked)}>; rel="next"'}
