"""Endpoints to browse the files of an archive: by name, by day, and page by page.

/files              matching files, ordered by start time
/files/names        names of streams or origins, with counts
/files/days         number of files for each day
/files/summary      number of files, and their total size
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response

from odfpy import __version__
from odfpy.archive.errors import NoSuchFile
from odfpy.archive.index.browse import NameSummary
from odfpy.archive.index.search import SearchIndex
from odfpy.archive.local import LocalArchive
from odfpy.archive.question import PAGE, Question, words
from odfpy.archive.times import FIRST, LAST, iso, parse_time
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import UsageError
from odfpy.serving.archive.browsing_models import DayModel, FilesModel, NameModel, SummaryModel, file_tree
from odfpy.serving.archive.served import ReadableArchive, archives_of
from odfpy.serving.callers.access import AnyCaller
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.rest.datasets import TOTAL
from odfpy.serving.rest.models import NOT_MODIFIED, answers, with_headers

router = APIRouter(tags=["archives"])

MAX_NAMES: Final = 500
"""Maximum number of names listed without a search."""

_TAG: Final = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_ANSWERS: Final = {**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(400, 401, 404, 422)}
_What = Annotated[
    list[str] | None,
    Query(max_length=1000, description="Types of the files; repeatable, or comma-separated.", examples=[["nginx"]]),
]
_Where = Annotated[
    list[str] | None, Query(max_length=1000, description="Origins of the files; repeatable, or comma-separated.")
]


@contextmanager
def refused_with_codes() -> Iterator[None]:
    """Translate errors of an archive into HTTP errors with the codes that `platform/errors` explains."""
    try:
        yield
    except (NoSuchFile, UsageError) as error:
        raise Refused.of(404 if isinstance(error, NoSuchFile) else 400, error, {"code": error.code}) from error


@router.get("/files/names", response_model=list[NameModel], responses=_ANSWERS)
def names(
    request: Request,
    served: ReadableArchive,
    what: _What = None,
    search: Annotated[str, Query(max_length=200, description="Part of the name.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of names.")] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Number of names to skip.")] = 0,
) -> Response:
    """List the values of `what`, or the origins of files of some `what`. A header has the number of names."""
    tag = _tag(served.archive, "names", what, search, limit, offset)
    known = not_modified(request, tag)
    if known is not None:
        return known
    index, whats = served.archive.index, words(what or ())
    summaries = _together(name for what in whats for name in index.names(what)) if whats else index.names()
    fitting = [summary for summary in summaries if search.strip().lower() in summary.name]
    tree = [_name_tree(summary) for summary in fitting[offset : offset + limit]]
    return reply(request, tree, tag, {TOTAL: str(len(fitting))})


def _together(names: Iterable[NameSummary]) -> list[NameSummary]:
    """Merge lists of names, each name once, in order."""
    merged: dict[str, NameSummary] = {}
    for summary in names:
        earlier = merged.get(summary.name, summary)
        count = summary.count if earlier is summary else earlier.count + summary.count
        merged[summary.name] = NameSummary(
            summary.name, count, min(earlier.first, summary.first), max(earlier.last, summary.last)
        )
    return [merged[name] for name in sorted(merged)]


def _name_tree(summary: NameSummary) -> dict[str, Any]:
    return {"name": summary.name, "numFiles": summary.count, "first": iso(summary.first), "last": iso(summary.last)}


@router.get("/files/days", response_model=list[DayModel], responses=_ANSWERS)
def days(request: Request, served: ReadableArchive, what: _What = None, where: _Where = None) -> Response:
    """Return the number of files that start on each day (UTC); days without files are omitted."""
    tag = _tag(served.archive, "days", what, where)
    known = not_modified(request, tag)
    if known is not None:
        return known
    archive, index, wheres = served.archive, served.archive.index, words(where or ())
    with refused_with_codes():
        whats = _chosen(index, what)
        key = (archive.dataset.folder, index.head, whats, wheres)
        counts = archives_of(request).days.get(key, lambda: _counted(index, whats, wheres))
    return reply(request, [{"day": _day(time), "numFiles": counts[time]} for time in sorted(counts)], tag)


def _counted(index: SearchIndex, whats: Sequence[str], wheres: Sequence[str]) -> dict[int, int]:
    """Count files by the first millisecond of the day on which they start."""
    counts: Counter[int] = Counter()
    for what in whats:
        for where in wheres or (None,):
            counts.update(index.days(what, where, since=FIRST, until=LAST))
    return counts


def _day(time: int) -> str:
    return (iso(time) or "").partition("T")[0]


def _tag(archive: LocalArchive, *asked: Any) -> str:
    return tag_of(__version__, str(archive.dataset.state.head), *asked)


def _chosen(index: SearchIndex, what: list[str] | None) -> tuple[str, ...]:
    """Return the names to search for: the given ones, or all.

    Raises:
        UsageError: there are too many names to search for all of them.
    """
    given = words(what or ())
    if given:
        return given
    names = tuple(entry.name for entry in index.names())
    if len(names) > MAX_NAMES:
        raise UsageError(f"The archive has {len(names)} names of files: choose one", hint="Say what: `what=...`.")
    return names


@router.get("/files", response_model=FilesModel, responses=answers(400, 401, 404, 422))
def files(
    request: Request,
    served: ReadableArchive,
    what: _What = None,
    where: _Where = None,
    start: Annotated[
        str | None,
        Query(max_length=100, description="Files that end at this time or later; a date, or milliseconds since 1970."),
    ] = None,
    end: Annotated[str | None, Query(max_length=100, description="Files that start at this time or before.")] = None,
    work_id: Annotated[
        str | None, Query(max_length=300, description="Files of this job, instead of a time range.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=8000, description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE, description="Maximum number of files per page.")] = PAGE,
) -> Response:
    """List matching files, ordered by start time; without `what`, files of all types."""
    is_ranged = start is not None or end is not None
    with refused_with_codes():
        names = _chosen(served.archive.index, what)
        if not names:  # the archive is empty
            return reply(request, {"files": [], "next": None})
        first = FIRST if start is None and work_id is None else _time(start)
        question = Question(
            what=names,
            where=words(where or ()),
            start=first,
            end=LAST if end is None and work_id is None and not is_ranged else _time(end),
            work_id=work_id,
        )
        page = served.archive.page(question, cursor, size=limit)
    return reply(request, {"files": [file_tree(record) for record in page.records], "next": page.next})


def _time(text: str | None) -> int | None:
    return None if text is None else parse_time(text)


@router.get("/files/summary", response_model=SummaryModel, responses={**_ANSWERS, **answers(429, 503)})
async def summary(request: Request, caller: AnyCaller, served: ReadableArchive) -> Response:
    """Return number, total size and time range of the files."""
    tallies = archives_of(request).tallies

    def work(control: CancellationToken) -> Response:
        dataset = served.archive.dataset
        tag = tag_of(__version__, "summary", str(dataset.state.head))
        known = not_modified(request, tag)
        if known is not None:
            return known
        engines = request.app.state.engines.get(caller)
        tally = tallies.get(dataset, engines, control)
        summaries = served.archive.index.names()
        return reply(
            request,
            SummaryModel(
                numFiles=tally.count,
                size=tally.size,
                numNames=len(summaries),
                first=iso(min((summary.first for summary in summaries), default=None)),
                last=iso(max((summary.last for summary in summaries), default=None)),
            ).model_dump(),
            tag,
        )

    answer: Response = await request.app.state.gate.run(request, caller, work)
    return answer
