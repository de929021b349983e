"""Subscriptions: `GET <dataset>/events` sends each new head as a server-sent event.

    event: head
    id: f1620...
    data: {"event": "head", "dataset": {"id": "did:odf:f...", "name": "com.example.rates"}, "head": "f1620...", ...}

The first event is the current head; with `Last-Event-ID`, only if it differs. Several commits in quick succession may
be one event: the blocks in between are in the chain.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Header, HTTPException, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.serving.callers.access import AnyCaller, Caller, Readable, is_readable
from odfpy.serving.notifications.heads import Followed, Heads, wait_for
from odfpy.serving.settings import ServeSettings

router = APIRouter(tags=["events"])

_EVENT = 'event: head\nid: f1620...\ndata: {"event": "head", "head": "f1620...", "sequenceNumber": 4}\n\n'
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events, until one side closes the connection.",
        "content": {"text/event-stream": {"example": _EVENT}},
    },
    401: {"description": "An access token is needed."},
    404: {"description": "There is no such dataset."},
    503: {"description": "There are too many subscriptions."},
}


@router.get("/events", response_class=StreamingResponse, responses=_ANSWERS)
async def events(
    request: Request,
    dataset: Readable,
    caller: AnyCaller,
    last_event_id: Annotated[
        str | None, Header(max_length=200, description="The head that the client already knows; it is not sent again.")
    ] = None,
) -> StreamingResponse:
    """Stream each new head of the dataset, as server-sent events."""
    metrics, settings = request.app.state.metrics, request.app.state.settings
    if request.app.state.num_streams >= settings.max_streams:
        raise HTTPException(503, "There are too many subscriptions", {"Retry-After": "60"})

    async def stream() -> AsyncIterator[str]:
        request.app.state.num_streams += 1
        metrics.streams.inc()
        try:
            async for text in _events(request.app.state.heads, settings, dataset, caller, last_event_id):
                yield text
        finally:
            request.app.state.num_streams -= 1
            metrics.streams.dec()

    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(stream(), media_type="text/event-stream", headers=headers)


async def _events(
    heads: Heads, settings: ServeSettings, dataset: StoredDataset, caller: Caller, last: str | None
) -> AsyncIterator[str]:
    last_sent = last
    yield ": this is a stream of events\n\n"
    with heads.following(dataset) as followed:
        while not heads.is_over:
            moved: asyncio.Event = followed.moved
            if followed.head is None or not await run_in_threadpool(is_readable, dataset, caller):
                yield "event: end\ndata: {}\n\n"
                return
            if str(followed.head) != last_sent:
                last_sent = str(followed.head)
                text = await run_in_threadpool(_event, followed)
                yield f"event: head\nid: {last_sent}\ndata: {text}\n\n"
            elif not await wait_for(moved, settings.heartbeat):
                yield ": nothing new\n\n"


def _event(followed: Followed) -> str:
    return json.dumps(head_event(followed.dataset, followed.head))


def head_event(dataset: StoredDataset, head: Multihash | None) -> dict[str, Any]:
    """Return the notification of a head, for events and webhooks alike.

    Args:
        dataset: the dataset.
        head: its last block, or the last one notified.
    """
    event: dict[str, Any] = {
        "event": "head",
        "dataset": {"id": str(dataset.handle.id), "name": str(dataset.handle.alias)},
        "head": str(head),
    }
    try:
        state = dataset.reloaded().state
    except OdfError:  # damaged: there is a new head nevertheless
        return event
    if state.head != head:  # it has moved again; the next event reports that
        return event
    watermark = state.watermark
    return {
        **event,
        "sequenceNumber": state.sequence_number,
        "numRecords": state.num_records,
        "watermark": None if watermark is None else str(watermark),
    }
