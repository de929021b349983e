"""Queries to an Ethereum node over JSON-RPC; responses are validated before use."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from odfpy.errors import FetchError, FetchInterrupted
from odfpy.http.client import HttpClient
from odfpy.ingest.fetch.context import FetchContext
from odfpy.ingest.fetch.redact import redact
from odfpy.ingest.fetch.retry import PASSING, wait_or_give_up

_HASH, _ADDRESS, _MAX_TOPICS = 32, 20, 4
_OF_THE_QUESTION = (200, 400, 413, 422, 500)  # statuses with which some nodes respond to an invalid query
_STATUS_HINTS = {
    401: "Check the key in the node's URL; a secret is written as ${{ env.NAME }}.",
    403: "Check the key in the node's URL, and its permissions.",
    404: "Check the node's URL.",
    413: "`odf config set ethereum.blocksPerRequest` sets smaller requests.",
    429: "The node limits requests; try again later. Committed data stays.",
}


class RefusedByNode(FetchError, code="E406"):
    """The node understood the request, and returns an error."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the chain: its number, its hash, and its time, in seconds."""

    number: int
    hash: bytes
    timestamp: int


@dataclass(frozen=True, slots=True)
class Log:
    """A log. Its fields are those of the resulting row; `block_timestamp` is in seconds, if the node reports it."""

    block_number: int
    block_hash: bytes
    block_timestamp: int | None
    transaction_index: int
    transaction_hash: bytes
    log_index: int
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


class EthereumNode:
    """A node.

    Attributes:
        shown: name of the node in messages.
        received: bytes of its answers so far.
    """

    def __init__(self, url: str, shown: str, secrets: Sequence[str], context: FetchContext) -> None:
        self.shown = shown
        self.received = 0
        self._url = url
        self._secrets = secrets
        self._context = context
        self._client = HttpClient(FetchError, interrupted=FetchInterrupted, timeout=context.timeout)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def chain_id(self) -> int:
        """Return the id of the node's chain."""
        return self._integer(self._ask("eth_chainId"), "the chain id")

    def block(self, which: int | str) -> Block:
        """Return a block by its number, or `latest`.

        Raises:
            FetchError: the node has no such block, or its response is invalid.
        """
        return self._block(self._ask("eth_getBlockByNumber", which if isinstance(which, str) else hex(which), False))

    def block_of_hash(self, block_hash: bytes) -> Block:
        """Return a block by its hash."""
        return self._block(self._ask("eth_getBlockByHash", f"0x{block_hash.hex()}", False))

    def logs(self, query: dict[str, Any]) -> list[Log]:
        """Return the logs that a query finds, in the order of the chain.

        Raises:
            RefusedByNode: the query is too large for the node, or rejected for another reason.
            FetchError: the node cannot be reached, or its response is invalid.
        """
        answer = self._ask("eth_getLogs", query)
        if not isinstance(answer, list):
            raise self._malformed("the logs are not a list")
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        logs = sorted(map(self._log, answer), key=lambda log: (log.block_number, log.log_index))
        if logs and not first <= logs[0].block_number <= logs[-1].block_number <= last:
            raise self._malformed(f"it sent logs of other blocks than {first} to {last}")
        return logs

    # --- Requests ---

    def _ask(self, method: str, *parameters: Any) -> Any:
        failures = 0
        while True:
            try:
                return self._ask_once(method, parameters)
            except FetchInterrupted as error:
                failures += 1
                wait_or_give_up(error, failures, self.shown, self._context)

    def _ask_once(self, method: str, parameters: tuple[Any, ...]) -> Any:
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
        body = json.dumps(question).encode()
        headers = {"Content-Type": "application/json"}
        limit = self._context.max_bytes
        with self._client.post(self._url, body, headers, max_size=limit, label=self.shown) as answer:
            text = answer.readall()
            status, wait = answer.status, answer.headers.get("Retry-After", "")
        self.received += len(text)
        try:
            tree = json.loads(text)
        except (ValueError, RecursionError):
            tree = None
        error = tree.get("error") if isinstance(tree, dict) else None
        if isinstance(error, dict) and status in _OF_THE_QUESTION:
            reason = redact(str(error.get("message", "no reason given"))[:500], self._secrets)
            raise RefusedByNode(
                f"{self.shown} refuses {method}: {reason}",
                hint="This is the answer of the node; see its documentation.",
            )
        if status != HTTPStatus.OK:
            raise self._bad_status(status, wait)
        if not isinstance(tree, dict) or "result" not in tree:
            raise self._malformed("it is not JSON-RPC")
        return tree["result"]

    def _bad_status(self, status: int, wait: str) -> FetchError:
        message = f"{self.shown}: the node answers {status}"
        hint = _STATUS_HINTS.get(status, "Check the node's URL, or try again later.")
        if status in PASSING:
            seconds = float(wait) if re.fullmatch("[0-9]{1,9}", wait) else None
            return FetchInterrupted(message, hint=hint, retry_after=seconds)
        return FetchError(message, hint=hint)

    def _malformed(self, problem: str) -> FetchError:
        return FetchError(
            f"{self.shown} sent a malformed answer: {problem}",
            hint="Check that the URL is that of an Ethereum node's JSON-RPC.",
        )

    # --- Responses ---

    def _block(self, tree: Any) -> Block:
        if tree is None:
            raise FetchError(
                f"{self.shown} does not have a block that it should have", hint="Check that the node is in sync."
            )
        if not isinstance(tree, dict):
            raise self._malformed("a block is not an object")
        return Block(
            self._integer(tree.get("number"), "number"),
            self._bytes(tree.get("hash"), "hash", _HASH),
            self._integer(tree.get("timestamp"), "timestamp"),
        )

    def _log(self, tree: Any) -> Log:
        if not isinstance(tree, dict) or not isinstance(tree.get("topics"), list):
            raise self._malformed("a log is not an object with topics")
        topics = tuple(self._bytes(topic, "topic", _HASH) for topic in tree["topics"])
        if len(topics) > _MAX_TOPICS:
            raise self._malformed(f"a log has {len(topics)} topics")
        made = tree.get("blockTimestamp")
        return Log(
            block_number=self._integer(tree.get("blockNumber"), "blockNumber"),
            block_hash=self._bytes(tree.get("blockHash"), "blockHash", _HASH),
            block_timestamp=None if made is None else self._integer(made, "blockTimestamp"),
            transaction_index=self._integer(tree.get("transactionIndex"), "transactionIndex"),
            transaction_hash=self._bytes(tree.get("transactionHash"), "transactionHash", _HASH),
            log_index=self._integer(tree.get("logIndex"), "logIndex"),
            address=self._bytes(tree.get("address"), "address", _ADDRESS),
            topics=topics,
            data=self._bytes(tree.get("data"), "data"),
        )

    def _integer(self, value: Any, name: str) -> int:
        try:
            number = int(value, 16) if isinstance(value, str) and value.startswith("0x") else -1
        except ValueError:
            number = -1
        if not 0 <= number < 1 << 63:
            raise self._malformed(f"{name} is {str(value)[:80]!r}")
        return number

    def _bytes(self, value: Any, name: str, size: int | None = None) -> bytes:
        try:
            data = bytes.fromhex(value[2:]) if isinstance(value, str) and value.startswith("0x") else None
        except ValueError:
            data = None
        if data is None or (size is not None and len(data) != size):
            raise self._malformed(f"{name} is {str(value)[:80]!r}")
        return data
