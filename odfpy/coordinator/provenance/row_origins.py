"""The origin of rows of root datasets: block, source, and the source state recorded with them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, AddPushSource, DisablePollingSource, DisablePushSource, SetPollingSource
from odfpy.chain.sources import (
    FetchContainer,
    FetchEthereumLogs,
    FetchFilesGlob,
    FetchMqtt,
    FetchStep,
    FetchUrl,
)
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.ingest.source_state import ETAG, POLLING_SOURCE
from odfpy.provenance.model import Origin


def origins_of(dataset: StoredDataset, offsets: Sequence[int]) -> Mapping[int, Origin]:
    """Return the origins of rows by offset: block and source at the time of their commit."""
    wanted = sorted(set(offsets))
    origins: dict[int, Origin] = {}
    fetch: FetchStep | None = None
    pushed: dict[str, None] = {}  # a set in order
    for hashed in dataset.chain.in_order():
        match hashed.block.event:
            case SetPollingSource(fetch=step):
                fetch = step
            case DisablePollingSource():
                fetch = None
            case AddPushSource(source_name=name):
                pushed[name] = None
            case DisablePushSource(source_name=name):
                pushed.pop(name, None)
            case AddData(new_data=data) as event if data is not None:
                first, last = data.offset_interval.start, data.offset_interval.end
                origin = _origin(hashed, event, fetch, list(pushed))
                origins |= dict.fromkeys(wanted[bisect_left(wanted, first) : bisect_right(wanted, last)], origin)
    return origins


def _origin(hashed: HashedBlock, event: AddData, fetch: FetchStep | None, pushed: Sequence[str]) -> Origin:
    state, block = event.new_source_state, hashed.block
    is_polled = fetch is not None and (state is None or state.source_name == POLLING_SOURCE)
    if is_polled and fetch is not None:
        source: str | None = _place_of(fetch)
    else:
        source = state.source_name if state is not None else pushed[0] if len(pushed) == 1 else None
    has_files = is_polled and isinstance(fetch, FetchFilesGlob) and state is not None and state.kind == ETAG
    return Origin(
        block=hashed.hash,
        sequence_number=block.sequence_number,
        system_time=block.system_time,
        source=source,
        file=state.value if has_files and state is not None else None,
        state_kind=None if state is None else state.kind,
        state=None if state is None else state.value,
    )


def _place_of(fetch: FetchStep) -> str:
    """Return the location of a source as in its manifest, where secrets are templates."""
    match fetch:
        case FetchUrl(url=url):
            return url
        case FetchFilesGlob(path=path):
            return path
        case FetchContainer(image=image):
            return image
        case FetchMqtt(host=host, port=port):
            return f"mqtt://{host}:{port}"
        case FetchEthereumLogs(node_url=url):
            return url or "Ethereum"
