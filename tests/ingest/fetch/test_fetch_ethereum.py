"""Logs of an Ethereum chain: rows, ranges of blocks, state, and nodes that refuse or lie. `support.servers.ethereum` is the node."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import workspace_with
from support.ingest.fetching import NOW, Fetcher
from support.servers.ethereum import GENESIS, Node, ethereum_node, hash_of

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.sources import FetchEthereumLogs
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.fetch import FetchContext, FetchedFile, SourceOptions, fetch
from odfpy.ingest.source_state import etag_state, last_modified_state

BURNED = "TokensBurned(address indexed from, uint256 amount, uint256 ethAmount, uint256 time)"
MINTED = "TokensMinted(address indexed to, uint256 amount, uint256 ethAmount, uint256 time)"
WHO = b"\x01" * 20


@pytest.fixture
def node() -> Iterator[Node]:
    with ethereum_node() as running:
        yield running


def step_of(node: Node, **given: Any) -> FetchEthereumLogs:
    return FetchEthereumLogs(**{"chain_id": 1, "node_url": node.url, **given})


def blocks(file: FetchedFile) -> list[int]:
    return [] if file.is_empty else pq.read_table(file.path).column("block_number").to_pylist()


def state(number: int, branch: str = "") -> Any:
    return etag_state(f"{number}@{hash_of(number, branch).hex()}")


# --- Rows ------------------------------------------------------------------------------------------------------------


def test_a_log_is_a_row(node: Node, run_fetch: Fetcher):
    node.put(5, [b"\x11" * 32, b"\x22" * 32], b"\x33", address=WHO)
    node.newest = 7
    (file,) = run_fetch(step_of(node))
    assert pq.read_table(file.path).to_pylist() == [
        {
            "block_number": 5,
            "block_hash": hash_of(5),
            "block_timestamp": Timestamp.from_millis((GENESIS + 60) * 1000).to_datetime(),
            "transaction_index": 0,
            "transaction_hash": hash_of(5, "transaction"),
            "log_index": 0,
            "address": WHO,
            "topic0": b"\x11" * 32,
            "topic1": b"\x22" * 32,
            "topic2": None,
            "topic3": None,
            "data": b"\x33",
        }
    ]
    assert (file.state, file.event_time, file.is_empty) == (state(7), NOW, False)
    assert file.name == f"{node.url}, blocks 0 to 7"


def test_columns_are_those_of_the_reference(node: Node, run_fetch: Fetcher):
    node.emit(1, BURNED, WHO, 2**200, 1, 2)
    (file,) = run_fetch(step_of(node, signature=BURNED.replace(" ", "\n")))
    schema = pq.read_schema(file.path)
    nullable = {field.name for field in schema if field.nullable}
    assert nullable == {"block_timestamp", "topic0", "topic1", "topic2", "topic3"}
    assert {field.type for field in schema} >= {pa.uint64(), pa.binary()}
    assert schema.field("event").type == pa.struct(
        [
            pa.field("from", pa.binary(), nullable=False),
            *(pa.field(name, pa.string(), nullable=False) for name in ("amount", "ethAmount", "time")),
        ]
    )
    (row,) = pq.read_table(file.path).to_pylist()
    assert row["event"] == {"from": WHO, "amount": str(2**200), "ethAmount": "1", "time": "2"}


def test_signature_leaves_out_other_events(node: Node, run_fetch: Fetcher):
    node.emit(1, MINTED, WHO, 1, 1, 1)
    node.emit(2, BURNED, WHO, 1, 1, 1)
    (file,) = run_fetch(step_of(node, signature=BURNED, filter="block_number >= 0"))
    assert blocks(file) == [2]


def test_rows_are_in_the_order_of_the_chain(node: Node, run_fetch: Fetcher):
    for block in (3, 1, 2, 1, 3):
        node.put(block, [])
    (file,) = run_fetch(step_of(node))
    rows = pq.read_table(file.path).select(["block_number", "log_index"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]


def test_times_of_blocks_are_asked_for_where_wanted(node: Node, run_fetch: Fetcher):
    node.tells_times = False
    for block in (1, 1, 2):
        node.put(block, [])
    (untold,) = run_fetch(step_of(node))
    assert pq.read_table(untold.path).column("block_timestamp").null_count == 3
    (told,) = run_fetch(step_of(node), options=SourceOptions(ethereum_ask_times=True))
    times = pq.read_table(told.path).column("block_timestamp").to_pylist()
    assert [int(time.timestamp()) - GENESIS for time in times] == [12, 12, 24]
    assert len(node.asked("eth_getBlockByHash")) == 2


# --- Ranges ----------------------------------------------------------------------------------------------------------


def test_filter_says_where_to_begin_and_to_end(node: Node, run_fetch: Fetcher):
    for block in range(10):
        node.put(block, [])
    (file,) = run_fetch(step_of(node, filter="block_number > 3 and block_number <= 7"))
    assert (blocks(file), file.state) == ([4, 5, 6, 7], state(7))
    assert run_fetch(step_of(node, filter="block_number <= 7"), state=state(7)) == []


def test_blocks_are_looked_through_once(node: Node, run_fetch: Fetcher):
    for block in (2, 5, 8):
        node.put(block, [])
    assert [blocks(file) for file in run_fetch(step_of(node), state=state(5))] == [[8]]
    assert run_fetch(step_of(node), state=state(8)) == []
    assert [blocks(file) for file in run_fetch(step_of(node), state=state(8), force=True)] == [[2, 5, 8]]


def test_state_of_the_reference_is_understood(node: Node, run_fetch: Fetcher):
    node.put(6, [])
    (file,) = run_fetch(step_of(node), state=etag_state("5@" + "ab" * 32))
    assert blocks(file) == [6]


def test_batches_are_of_rows_or_of_blocks(node: Node, run_fetch: Fetcher):
    node.newest = 99
    for block in (10, 11, 12, 13, 75):
        node.put(block, [])
    options = SourceOptions(batch_size=2, ethereum_blocks_per_request=2, ethereum_blocks_per_commit=40)
    files = run_fetch(step_of(node), options=options)
    assert [(blocks(file), str(file.state.value).partition("@")[0]) for file in files] == [
        ([10, 11], "11"),
        ([12, 13], "13"),
        ([], "53"),
        ([75], "93"),
        ([], "99"),
    ]
    assert [file.is_empty for file in files] == [False, False, True, False, True]


def test_settings_of_nothing_count_as_one(node: Node, run_fetch: Fetcher):
    node.put(0, [])
    node.put(1, [])
    nothing = SourceOptions(batch_size=0, ethereum_blocks_per_request=0, ethereum_blocks_per_commit=0)
    assert [blocks(file) for file in run_fetch(step_of(node), options=nothing)] == [[0], [1]]


def test_next_batch_is_fetched_when_it_is_asked_for(node: Node, tmp_path: Path):
    node.newest = 9
    options = SourceOptions(ethereum_blocks_per_request=5, ethereum_blocks_per_commit=5)
    context = FetchContext(now=NOW, root=tmp_path, scratch=tmp_path, options=options)
    files = fetch(step_of(node), context)
    next(files)
    assert len(node.asked("eth_getLogs")) == 1
    files.close()


def test_newest_blocks_can_be_left_for_later(node: Node, run_fetch: Fetcher):
    for block in range(5):
        node.put(block, [])
    (file,) = run_fetch(step_of(node), options=SourceOptions(ethereum_confirmations=2))
    assert (blocks(file), file.state) == ([0, 1, 2], state(2))
    assert run_fetch(step_of(node), options=SourceOptions(ethereum_confirmations=9)) == []


def test_node_that_looks_through_few_blocks_is_asked_for_fewer(node: Node, run_fetch: Fetcher):
    node.most_blocks = 10
    node.newest = 99
    for block in range(100):
        node.put(block, [])
    files = run_fetch(step_of(node))
    assert list(chain.from_iterable(map(blocks, files))) == list(range(100))
    refused = [int(query["toBlock"], 16) - int(query["fromBlock"], 16) for (query,) in node.asked("eth_getLogs")]
    assert sum(count >= 10 for count in refused) == 4  # 100, 50, 25, 12 blocks


def test_replaced_blocks_are_not_looked_at_again(node: Node, run_fetch: Fetcher):
    node.put(1, [])
    (first,) = run_fetch(step_of(node))
    node.branch, node.logs, node.newest = "other ", [], 3
    node.put(1, [])
    node.put(3, [])
    assert [blocks(file) for file in run_fetch(step_of(node), state=first.state)] == [[3]]


# --- Nodes -----------------------------------------------------------------------------------------------------------


def test_node_of_a_chain_is_in_the_settings(node: Node, run_fetch: Fetcher):
    node.chain = 3338
    nodes = f"1=http://127.0.0.1:1/v1  3338={node.url}/${{{{ env.KEY || 'a b' }}}} 5=http://127.0.0.1:1"
    options = SourceOptions(ethereum_nodes=nodes)
    (file,) = run_fetch(FetchEthereumLogs(chain_id=3338), options=options, environment={"KEY": "s3cret"})
    assert file.is_empty
    with pytest.raises(FetchError, match="No node is known for the chain 137") as caught:
        run_fetch(FetchEthereumLogs(chain_id=137), options=options)
    assert "odf config set ethereum.nodes '137=https://" in str(caught.value.hint)


def test_chain_must_be_the_one_that_is_meant(node: Node, run_fetch: Fetcher):
    with pytest.raises(FetchError, match="is on the chain 1, not 5"):
        run_fetch(step_of(node, chain_id=5))
    assert run_fetch(step_of(node, chain_id=None)) != []


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://127.0.0.1:1/s3cret", "Cannot read http://127.0.0.1:1: Connection refused"),
        ("wss://node.example.com/s3cret", "wss://node.example.com is not an http or https URL"),
        ("node.example.com", "node.example.com is not an http or https URL"),
        ("https://user:s3cret@", "is not an http or https URL | Not an http"),
    ],
)
def test_url_that_leads_nowhere(url: str, message: str, run_fetch: Fetcher):
    with pytest.raises(FetchError) as caught:
        run_fetch(FetchEthereumLogs(node_url=url))
    assert any(part in caught.value.message for part in message.split(" | "))
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("method", "answer", "message"),
    [
        ("eth_chainId", (401, b"who are you, s3cret?"), "the node answers 401"),
        ("eth_chainId", (429, b"{}"), "the node answers 429"),
        ("eth_chainId", (500, b""), "the node answers 500"),
        ("eth_chainId", (500, b'{"error": {"message": "key s3cret is not a key"}}'), "refuses eth_chainId: key ***"),
        ("eth_chainId", (401, b'{"error": {"message": "key s3cret is not a key"}}'), "the node answers 401"),
        ("eth_chainId", (302, b""), "the node answers 302"),
        ("eth_chainId", (200, b"<html>"), "not JSON-RPC"),
        ("eth_chainId", (200, b"[]"), "not JSON-RPC"),
        ("eth_chainId", (200, b"{}"), "not JSON-RPC"),
        ("eth_chainId", (200, b"[" * 100_000), "not JSON-RPC"),
        ("eth_chainId", (200, b'{"error": {"message": "key s3cret is not a key"}}'), "refuses eth_chainId: key *** is"),
        ("eth_chainId", "one", "the chain id is 'one'"),
        ("eth_chainId", "0x" + "f" * 40, "the chain id is '0xffff"),
        ("eth_getBlockByNumber", None, "does not have a block"),
        ("eth_getBlockByNumber", "0x1", "a block is not an object"),
        ("eth_getBlockByNumber", {"number": "0x1", "hash": "0x12", "timestamp": "0x1"}, "hash is '0x12'"),
        ("eth_getLogs", {}, "the logs are not a list"),
        ("eth_getLogs", [1], "a log is not an object with topics"),
        ("eth_getLogs", [{"topics": ["0x" + "00" * 32] * 5}], "a log has 5 topics"),
        ("eth_getLogs", [{"topics": [], "blockNumber": None}], "blockNumber is 'None'"),
    ],
)
def test_node_that_refuses_or_makes_no_sense(method: str, answer: Any, message: str, node: Node, run_fetch: Fetcher):
    node.special[method] = lambda *_: answer
    with pytest.raises(FetchError) as caught:
        run_fetch(step_of(node, node_url=f"{node.url}/${{{{ env.KEY }}}}"), environment={"KEY": "s3cret"})
    assert message in caught.value.message
    assert caught.value.message.startswith(node.url)
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"
    assert caught.value.hint


def test_node_that_is_busy_is_asked_again(node: Node, run_fetch: Fetcher):
    answers: list[Any] = [(429, b"slow down"), (503, b""), (200, b""), "0x1"]
    node.put(1, [])
    node.special["eth_chainId"] = lambda: answers.pop(0)
    waits: list[float] = []
    with pytest.raises(FetchError, match="not JSON-RPC"):
        run_fetch(step_of(node), pause=waits.append)
    assert [blocks(file) for file in run_fetch(step_of(node), pause=waits.append)] == [[1]]
    assert waits == [1.0, 2.0]


def test_node_that_stays_busy_is_given_up(node: Node, run_fetch: Fetcher):
    node.special["eth_chainId"] = lambda: (429, b"")
    with pytest.raises(FetchError, match=r"the node answers 429 \(tried 3 times\)"):
        run_fetch(step_of(node), retries=2)
    assert len(node.questions) == 3


def test_logs_of_other_blocks_are_refused(node: Node, run_fetch: Fetcher):
    node.put(9, [])
    node.newest, stray = 5, list(node.logs)
    node.special["eth_getLogs"] = lambda _: stray
    with pytest.raises(FetchError, match="logs of other blocks than 0 to 5"):
        run_fetch(step_of(node))


def test_answer_that_is_too_long(node: Node, run_fetch: Fetcher):
    node.special["eth_getLogs"] = lambda _: ["0" * 10_000]
    with pytest.raises(FetchError, match="1000 are allowed"):
        run_fetch(step_of(node), max_bytes=1000)


def test_log_that_is_not_of_the_signature_is_named(node: Node, run_fetch: Fetcher):
    indexed = "Transfer(address indexed from, address indexed to, uint256 indexed id)"
    node.emit(4, indexed, WHO, WHO, 1)
    with pytest.raises(
        FetchError, match="log 0 of block 4 is not a valid Transfer of this signature: it has 3 indexed"
    ) as caught:
        run_fetch(step_of(node, signature="Transfer(address indexed from, address indexed to, uint256 value)"))
    assert "Restrict the filter" in str(caught.value.hint)


@pytest.mark.parametrize(
    "given",
    [
        {"filter": "block_number >"},
        {"signature": "TokensBurned"},
        {"signature": "TokensBurned(address)"},
        {"signature": BURNED, "filter": f"topic0 = eth_event_selector('{MINTED}')"},
    ],
)
def test_unusable_options_are_found_before_anything_is_asked(given: dict[str, str], node: Node, run_fetch: Fetcher):
    with pytest.raises(InvalidValue):
        run_fetch(step_of(node, **given))
    assert node.questions == []


@pytest.mark.parametrize("known", [etag_state("not a state"), last_modified_state(NOW)])
def test_state_of_another_source_is_refused(known: Any, node: Node, run_fetch: Fetcher):
    with pytest.raises(FetchError, match="is not that of an EthereumLogs source"):
        run_fetch(step_of(node), state=known)


def test_without_the_library_the_error_names_the_extra(node: Node, run_fetch: Fetcher, monkeypatch: Any):
    monkeypatch.setitem(sys.modules, "eth_hash.auto", None)
    with pytest.raises(FetchError, match="Events of Ethereum need the Python package eth_hash") as caught:
        run_fetch(step_of(node, signature=BURNED))
    assert caught.value.hint == "pip install 'opendatafabric[ethereum]'"


# --- In a pull -------------------------------------------------------------------------------------------------------

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: tokens-burned
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: EthereumLogs
        chainId: 1
        signature: |
          TokensBurned(
            address indexed from,
            uint256 amount,
            uint256 ethAmount,
            uint256 time
          )
        filter: |
          address = X'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
          and
          block_number > 100
      read: {kind: Parquet}
      preprocess:
        kind: Sql
        engine: datafusion
        query: |
          select
            coalesce(block_timestamp, to_timestamp_seconds(cast(event.time as bigint))) as event_time,
            block_number,
            block_hash,
            log_index,
            'TokensBurned' as event_name,
            event.from as from,
            cast(event.amount as double) / pow(10.0, 18) as amount,
            cast(event."ethAmount" as double) / pow(10.0, 18) as eth_amount
          from input
      merge: {kind: Append}
"""


def test_pull_of_a_manifest_like_those_of_the_public_repository(node: Node, tmp_path: Path):
    node.tells_times = False
    node.emit(100, BURNED, WHO, 1, 1, 1)  # before the filter
    node.emit(101, BURNED, WHO, 15 * 10**17, 2 * 10**18, GENESIS)
    node.newest = 150
    workspace = workspace_with(tmp_path, MANIFEST)
    workspace.config.set("ethereum.nodes", f"1={node.url}")
    (result,) = workspace.pull(["tokens-burned"])
    assert (result.error, result.num_records) == (None, 1)
    (row,) = workspace.tail("tokens-burned", 10).to_pylist()
    assert (row["block_number"], row["amount"], row["eth_amount"], row["from"]) == (101, 1.5, 2.0, WHO)
    assert int(row["event_time"].timestamp()) == GENESIS

    node.newest = 160  # nothing in it, but it has been looked through
    (result,) = workspace.pull(["tokens-burned"])
    assert (result.error, result.num_records, result.num_blocks) == (None, 0, 1)
    node.emit(161, BURNED, WHO, 1, 1, GENESIS + 12)
    (result,) = workspace.pull(["tokens-burned"])
    assert (result.error, result.num_records) == (None, 1)
    assert node.asked("eth_getLogs")[-1][0]["fromBlock"] == hex(161)
    (again,) = workspace.pull(["tokens-burned"])
    assert again.outcome is PullOutcome.UP_TO_DATE


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("", "", None),
        ("block_number > 100", "block_number > now()", "which is not a whole number"),
        ("uint256 amount,", "uint257 amount,", "'uint257' is not a type of a parameter"),
        ("event.amount", "event.amounts", "amounts"),
    ],
)
def test_add_says_what_no_pull_could_take_in(old: str, new: str, note: str | None, tmp_path: Path):
    workspace = Workspace.init(tmp_path)
    (added,) = workspace.add(load_snapshots(MANIFEST.replace(old, new), "manifest"))
    assert (note is None) == (added.notes == ())
    assert note is None or note in str(added.notes)


TWO_EVENTS = f"""
kind: DatasetSnapshot
version: 1
content:
  name: mint-burn
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch:
        kind: EthereumLogs
        nodeUrl: ${{{{ env.ODF_TEST_NODE }}}}
        filter: topic0 = eth_event_selector('{MINTED}') or topic0 = eth_event_selector('{BURNED}')
      read: {{kind: Parquet}}
      preprocess:
        kind: Sql
        engine: datafusion
        query: |
          select
            block_timestamp as event_time,
            json_get_str(event, 'name') as event_name,
            decode(coalesce(json_get_str(event, 'to'), json_get_str(event, 'from')), 'hex') as holder,
            cast(json_get_str(event, 'amount') as double) / pow(10.0, 18) as amount
          from (
            select
              *,
              coalesce(
                eth_try_decode_event('{MINTED}', topic0, topic1, topic2, topic3, data),
                eth_try_decode_event('{BURNED}', topic0, topic1, topic2, topic3, data)
              ) as event
            from input
          )
      merge: {{kind: Append}}
"""


def test_pull_of_two_events_decoded_in_the_query(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ODF_TEST_NODE", node.url)
    node.emit(1, MINTED, WHO, 10**18, 1, 1)
    node.emit(2, "Other(uint256 value)", 1)
    node.emit(3, BURNED, WHO, 2 * 10**18, 1, 1)
    workspace = workspace_with(tmp_path, TWO_EVENTS)
    (result,) = workspace.pull(["mint-burn"])
    assert result.error is None
    rows = workspace.tail("mint-burn", 10).select(["event_name", "holder", "amount"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [("TokensMinted", WHO, 1.0), ("TokensBurned", WHO, 2.0)]
