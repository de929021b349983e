"""Fetching logs of an Ethereum chain (ODF specification, "FetchStep: EthereumLogs").

A node is queried for one range of blocks after the other. The logs become a Parquet file with the columns below, and
with a `signature` also the struct `event`; the source must have `read: {kind: Parquet}`. The source state is the last
scanned block, as `number@hash`. Blocks that the chain replaces afterwards are not scanned again.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from odfpy.chain.sources import FetchEthereumLogs
from odfpy.errors import FetchError, InvalidValue
from odfpy.ethereum.events import EventSignature, NotOfThisEvent
from odfpy.ingest.fetch.context import FetchContext, FetchedFile
from odfpy.ingest.fetch.ethereum.filter import TOPICS, LogFilter, parse_filter
from odfpy.ingest.fetch.redact import secrets_of
from odfpy.ingest.source_state import etag_state, known_etag
from odfpy.ingest.templates import expand, without_secrets

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.ingest.fetch.ethereum.node import EthereumNode, Log

_STATE = re.compile(r"([0-9]{1,18})@(?:0x)?[0-9a-f]+", re.ASCII)


def fetch_ethereum_logs(step: FetchEthereumLogs, context: FetchContext) -> Iterator[FetchedFile]:
    """Yield the logs of blocks that were not scanned yet, in batches.

    Raises:
        FetchError: the node cannot be reached, refuses, is on another chain, or its responses are invalid.
        InvalidValue: filter or signature cannot be used.
    """
    wanted, event = _filter(step)
    with closing(_node(step, context)) as node:
        if step.chain_id is not None and (found := node.chain_id()) != step.chain_id:
            raise FetchError(
                f"{node.shown} is on the chain {found}, not {step.chain_id}",
                hint="Check `nodeUrl` and `chainId`, or the setting ethereum.nodes.",
            )
        wanted = wanted.between(
            _next_block(context), node.block("latest").number - context.options.ethereum_confirmations
        )
        yield from _batches(node, wanted, event, context)


def columns_of(step: FetchEthereumLogs) -> pa.Schema:
    """Return the columns that the logs of a source have.

    Raises:
        InvalidValue: filter or signature cannot be used.
    """
    return _schema(_filter(step)[1])


def _filter(step: FetchEthereumLogs) -> tuple[LogFilter, EventSignature | None]:
    event = None if step.signature is None else EventSignature.parse(step.signature)
    wanted = parse_filter(step.filter)
    if event is not None:
        event.arrow_type()  # types that cannot be stored need not be fetched
        wanted = wanted.only(TOPICS[0], frozenset({event.selector}))
    if wanted.is_empty:
        raise InvalidValue("The filter excludes the event of the signature", hint="Omit topic0 from the filter.")
    return wanted, event


def _batches(
    node: EthereumNode, wanted: LogFilter, event: EventSignature | None, context: FetchContext
) -> Iterator[FetchedFile]:
    options = context.options
    first, last = wanted.first_block, wanted.last_block if wanted.last_block is not None else -1
    stride = max(1, options.ethereum_blocks_per_request)
    most_logs, most_blocks = max(1, options.batch_size), max(1, options.ethereum_blocks_per_commit)
    while first <= last:
        logs: list[Log] = []
        start = first
        while first <= last and len(logs) < most_logs and first - start < most_blocks:
            stride, found = _ask(node, wanted, first, min(last - first + 1, stride), stride)
            logs += found
            first += min(last - first + 1, stride)
            if context.progress is not None:
                context.progress(node.received, None)
        seen = node.block(first - 1)
        if options.ethereum_ask_times:
            logs = _with_times(logs, node)
        yield FetchedFile(
            path=_save(logs, event, node.shown, context) if logs else context.scratch,
            name=f"{node.shown}, blocks {start} to {first - 1}",
            state=etag_state(f"{seen.number}@{seen.hash.hex()}"),
            event_time=context.now,
            is_temporary=True,
            is_empty=not logs,
        )


def _ask(node: EthereumNode, wanted: LogFilter, first: int, count: int, stride: int) -> tuple[int, list[Log]]:
    """Return the stride and the logs of a range of blocks; both shrink while the range is too large for the node."""
    from odfpy.ingest.fetch.ethereum.node import RefusedByNode

    while True:
        try:
            return stride, node.logs(wanted.query(first, first + count - 1))
        except RefusedByNode:
            if count == 1:
                raise
            stride = count = count // 2


def _next_block(context: FetchContext) -> int:
    known = known_etag(context.known_state)
    if context.known_state is None:
        return 0
    match = _STATE.fullmatch(known or "")
    if match is None:
        raise FetchError(
            f"The source state {context.known_state.value!r} is not that of an EthereumLogs source",
            hint="`odf pull --force` starts from the first block.",
        )
    return int(match[1]) + 1


# --- The node --------------------------------------------------------------------------------------------------------


def _node(step: FetchEthereumLogs, context: FetchContext) -> EthereumNode:
    from odfpy.ingest.fetch.ethereum.node import EthereumNode

    template = step.node_url or _nodes(context.options.ethereum_nodes).get(step.chain_id)
    if template is None:
        chain = "an unnamed chain" if step.chain_id is None else f"the chain {step.chain_id}"
        raise FetchError(
            f"No node is known for {chain}",
            hint="Set `nodeUrl` in the manifest, or for all manifests: "
            f"odf config set ethereum.nodes '{step.chain_id or 1}=https://node.example.com/${{{{ env.KEY }}}}'",
        )
    # Keys of nodes are part of the path, so messages stop before it.
    shown = re.sub(r"(?<=[^:/])/.*", "", without_secrets(template), flags=re.DOTALL)
    url = expand(template, context.environment).strip()
    scheme = urlsplit(url).scheme
    if scheme not in ("http", "https"):
        raise FetchError(
            f"{shown} is not an http or https URL",
            hint="Most nodes with a wss: URL also have an https: URL; see their documentation.",
        )
    if step.node_url is not None:
        context.options.bounds.require_host(url)
    secrets = [*secrets_of([template], context.environment), url]
    return EthereumNode(url, shown, secrets, context)


def _nodes(setting: str | None) -> dict[int | None, str]:
    """Return the setting ethereum.nodes as chain ids and templates of URLs."""
    entries = re.split(r"\s+(?=[0-9]+=)", (setting or "").strip())
    return {int(chain): url for chain, _, url in (entry.partition("=") for entry in entries) if url}


def _with_times(logs: Sequence[Log], node: EthereumNode) -> list[Log]:
    """Return the logs with the times of their blocks, queried where they are missing."""
    missing = sorted({log.block_hash for log in logs if log.block_timestamp is None})
    times = {block_hash: node.block_of_hash(block_hash).timestamp for block_hash in missing}
    return [
        log if log.block_timestamp is not None else replace(log, block_timestamp=times[log.block_hash]) for log in logs
    ]


# --- Rows ------------------------------------------------------------------------------------------------------------


def _schema(event: EventSignature | None) -> pa.Schema:
    import pyarrow as pa

    def field(name: str, kind: pa.DataType, *, nullable: bool = False) -> pa.Field:
        return pa.field(name, kind, nullable=nullable)

    columns = [
        field("block_number", pa.uint64()),
        field("block_hash", pa.binary()),
        field("block_timestamp", pa.timestamp("ms", "UTC"), nullable=True),  # many nodes do not report it
        field("transaction_index", pa.uint64()),
        field("transaction_hash", pa.binary()),
        field("log_index", pa.uint64()),
        field("address", pa.binary()),
        *(field(topic, pa.binary(), nullable=True) for topic in TOPICS),
        field("data", pa.binary()),
    ]
    return pa.schema(columns if event is None else [*columns, field("event", event.arrow_type())])


def _save(logs: Sequence[Log], event: EventSignature | None, shown: str, context: FetchContext) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(event)
    table = pa.Table.from_pylist([_row(log, event, shown) for log in logs], schema)
    try:
        context.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=context.scratch, prefix="logs-", delete=False) as file:
            pq.write_table(table, file)
    except OSError as error:
        raise FetchError(f"Cannot write the data of {shown} to {context.scratch}: {error.strerror}") from error
    return Path(file.name)


def _row(log: Log, event: EventSignature | None, shown: str) -> dict[str, object]:
    row: dict[str, object] = {field.name: getattr(log, field.name) for field in fields(log) if field.name != "topics"}
    if log.block_timestamp is not None:
        row["block_timestamp"] = log.block_timestamp * 1000
    row |= dict(zip(TOPICS, log.topics, strict=False))
    return row if event is None else {**row, "event": _decoded(log, event, shown)}


def _decoded(log: Log, event: EventSignature, shown: str) -> dict[str, object]:
    try:
        return event.decode(log.topics, log.data)
    except NotOfThisEvent as error:
        raise FetchError(
            f"{shown}: log {log.log_index} of block {log.block_number} is not a valid {event.name} of this signature:"
            f" {error}",
            hint="Restrict the filter to the right contracts, or omit `signature`.",
        ) from error
