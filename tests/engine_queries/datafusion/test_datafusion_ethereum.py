"""Functions over Ethereum logs in DataFusion, with the examples of the reference's manual."""

from __future__ import annotations

import pyarrow as pa
import pytest
from eth_abi.abi import encode

from odfpy.engine.datafusion.failures import datafusion_errors
from odfpy.engine.datafusion.session import name_rows, new_session, run_query
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery
from odfpy.ethereum.events import selector_of

REQUEST = "SendRequest(uint64 indexed requestId, address indexed consumerAddr, bytes request)"
OTHER = "Other(uint256 value)"
COLUMNS = "topic0, topic1, topic2, topic3, data"


def answer(query: str) -> list[object]:
    """One column over a log of REQUEST and one of OTHER."""
    session = new_session(deterministic=True)
    request = [selector_of(REQUEST), encode(["uint64"], [123]), encode(["address"], [b"\xaa\xbb\xcc\xdd" * 5]), None]
    logs = [
        [*request, encode(["bytes"], [b"\xff\x00\xbb\xaa"])],
        [selector_of(OTHER), None, None, None, encode(["uint256"], [2**255])],
    ]
    names = COLUMNS.split(", ")
    table = pa.table({name: pa.array([log[at] for log in logs], pa.binary()) for at, name in enumerate(names)})
    name_rows(session, "logs", table.schema, table.to_batches())
    with datafusion_errors(SourceText(query)):
        return run_query(session, query).to_arrow_table().column(0).to_pylist()


def test_selector():
    assert answer(f"select eth_event_selector('{REQUEST}') from logs limit 1") == [selector_of(REQUEST)]
    assert answer(f"select data from logs where topic0 = eth_event_selector('{OTHER}')") == [b"\x80" + b"\0" * 31]


def test_decoded_event_is_json_in_the_order_of_keys():
    query = f"select eth_decode_event('{REQUEST}', {COLUMNS}) from logs where topic1 is not null"
    address = "aabbccdd" * 5
    expected = f'{{"consumerAddr":"{address}","name":"SendRequest","request":"ff00bbaa","requestId":123}}'
    assert answer(query) == [expected]


def test_log_of_another_event_is_null_where_it_is_tried():
    query = f"select json_get_str(eth_try_decode_event('{OTHER}', {COLUMNS}), 'value') from logs"
    assert answer(query) == [None, str(2**255)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (f"select eth_decode_event('{OTHER}', {COLUMNS}) from logs", "the first topic differs"),
        (f"select eth_try_decode_event('nothing', {COLUMNS}) from logs", "'nothing' is not a signature of an event"),
        ("select eth_event_selector('nothing') from logs", "'nothing' is not a signature of an event"),
    ],
)
def test_what_cannot_be_decoded_is_an_error(query: str, message: str):
    with pytest.raises(InvalidQuery, match=message):
        answer(query)
