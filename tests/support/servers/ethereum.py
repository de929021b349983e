"""An Ethereum node on the loopback interface, for JSON-RPC: blocks and logs added by a test."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from eth_abi.abi import encode
from support.servers.static_server import running

from odfpy.ethereum.events import EventSignature

GENESIS = 1_700_000_000
"""Time of block 0; the others follow every 12 seconds."""


def hash_of(number: int, branch: str = "") -> bytes:
    """Return the hash of a block; another branch of the chain has others."""
    return sha256(f"{branch}{number}".encode()).digest()


@dataclass
class Node:
    """A node.

    Attributes:
        chain: id of the chain.
        newest: number of the newest block.
        logs: the logs of `eth_getLogs`, in its form.
        most_blocks: maximum blocks per query; larger queries are rejected.
        questions: method and parameters of all requests.
        special: methods with special responses: a result, or status and bytes.
    """

    chain: int = 1
    newest: int = 0
    branch: str = ""
    tells_times: bool = True
    most_blocks: int = 1 << 62
    logs: list[dict[str, Any]] = field(default_factory=list)
    questions: list[tuple[str, list[Any]]] = field(default_factory=list)
    special: dict[str, Callable[..., Any]] = field(default_factory=dict)
    url: str = ""

    def emit(self, block: int, signature: str, *values: Any, address: bytes = b"\xaa" * 20) -> None:
        """Add the log of an event to a block; the values are in the order of the signature."""
        event = EventSignature.parse(signature)
        pairs = list(zip(event.parameters, values, strict=True))
        topics = [event.selector] + [encode([p.abi_type], [v]) for p, v in pairs if p.is_indexed]
        rest = [(p, v) for p, v in pairs if not p.is_indexed]
        data = encode([p.type for p, _ in rest], [v for _, v in rest])
        self.put(block, topics, data, address)

    def put(self, block: int, topics: list[bytes], data: bytes = b"", address: bytes = b"\xaa" * 20) -> None:
        """Add a log to a block."""
        index = sum(log["blockNumber"] == hex(block) for log in self.logs)
        log = {
            "blockNumber": hex(block),
            "blockHash": text(hash_of(block, self.branch)),
            "transactionIndex": hex(0),
            "transactionHash": text(hash_of(block, "transaction")),
            "logIndex": hex(index),
            "address": text(address),
            "topics": [text(topic) for topic in topics],
            "data": text(data),
            "removed": False,
        }
        self.logs.append(log | ({"blockTimestamp": hex(GENESIS + 12 * block)} if self.tells_times else {}))
        self.newest = max(self.newest, block)

    def asked(self, method: str) -> list[list[Any]]:
        """Return the parameters of all questions of a kind."""
        return [parameters for name, parameters in self.questions if name == method]

    def answer(self, method: str, parameters: list[Any]) -> Any:
        """Return the result of a method; ValueError is an error."""
        if method in self.special:
            return self.special[method](*parameters)
        if method == "eth_chainId":
            return hex(self.chain)
        if method == "eth_getBlockByNumber":
            number = self.newest if parameters[0] == "latest" else int(parameters[0], 16)
            return self._block(number) if number <= self.newest else None
        if method == "eth_getBlockByHash":
            numbers = {text(hash_of(number, self.branch)): number for number in range(self.newest + 1)}
            return self._block(numbers[parameters[0]])
        if method == "eth_getLogs":
            return self._find(parameters[0])
        raise ValueError(f"the method {method} does not exist")

    def _block(self, number: int) -> dict[str, str]:
        made = GENESIS + 12 * number
        return {"number": hex(number), "hash": text(hash_of(number, self.branch)), "timestamp": hex(made)}

    def _find(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = int(query["fromBlock"], 16), int(query["toBlock"], 16)
        if last - first >= self.most_blocks:
            raise ValueError(f"block range is too wide, at most {self.most_blocks}")
        topics = query.get("topics", [])
        return [
            log
            for log in reversed(self.logs)  # their order is unspecified
            if first <= int(log["blockNumber"], 16) <= last
            if "address" not in query or log["address"] in query["address"]
            if len(log["topics"]) >= len(topics)
            if all(wanted is None or topic in wanted for topic, wanted in zip(log["topics"], topics, strict=False))
        ]


def text(data: bytes) -> str:
    return f"0x{data.hex()}"


@contextmanager
def ethereum_node() -> Iterator[Node]:
    """Run a node."""
    node = Node()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            node.questions.append((question["method"], question["params"]))
            status = 200
            try:
                result = node.answer(question["method"], question["params"])
            except ValueError as error:
                body = {"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32000, "message": str(error)}}
                answer = json.dumps(body).encode()
            else:
                if isinstance(result, tuple):
                    status, answer = result
                else:
                    answer = json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        node.url = f"http://127.0.0.1:{server.server_port}"
        with running(server):
            yield node
