"""Filters of EthereumLogs sources: what a node is asked for, and what it cannot be asked."""

from __future__ import annotations

import pytest

from odfpy.errors import InvalidValue
from odfpy.ethereum.events import selector_of
from odfpy.ingest.fetch.ethereum.filter import LogFilter, parse_filter

A, B = b"\xaa" * 20, b"\xbb" * 20
T, U = b"\x11" * 32, b"\x22" * 32
TRANSFER = "Transfer(address indexed from, address indexed to, uint256 value)"
NONE = (None, None, None, None)


def sql(value: bytes) -> str:
    return f"X'{value.hex()}'"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, LogFilter()),
        (" \n", LogFilter()),
        (f"address = {sql(A)}", LogFilter(addresses=frozenset({A}))),
        (f"{sql(A)} = address", LogFilter(addresses=frozenset({A}))),
        (f"address = '0x{A.hex()}'", LogFilter(addresses=frozenset({A}))),
        (f"address = {sql(A)} or address = {sql(B)}", LogFilter(addresses=frozenset({A, B}))),
        (f"address in ({sql(A)}, {sql(B)})", LogFilter(addresses=frozenset({A, B}))),
        (f"(((address in ({sql(A)}, {sql(B)}))) and address = {sql(B)})", LogFilter(addresses=frozenset({B}))),
        (f"topic1 = {sql(T)}", LogFilter(topics=(None, frozenset({T}), None, None))),
        (
            f"topic0 = {sql(T)} AND (topic3 = {sql(T)} or (topic3 = {sql(U)} or topic3 = {sql(T)}))",
            LogFilter(topics=(frozenset({T}), None, None, frozenset({T, U}))),
        ),
        (
            f"topic0 = eth_event_selector('{TRANSFER}')",
            LogFilter(topics=(frozenset({selector_of(TRANSFER)}), None, None, None)),
        ),
        ("block_number > 9", LogFilter(first_block=10)),
        ("9 < block_number", LogFilter(first_block=10)),
        ("block_number >= 9 and block_number >= 7", LogFilter(first_block=9)),
        ("block_number < 9", LogFilter(last_block=8)),
        ("9 >= block_number", LogFilter(last_block=9)),
        ("block_number = 9", LogFilter(first_block=9, last_block=9)),
        ("block_number between 3 and 9 and block_number <= 5", LogFilter(first_block=3, last_block=5)),
        ('"block_number" > 1 -- since the contract was made', LogFilter(first_block=2)),
    ],
)
def test_filter_is_understood(text: str | None, wanted: LogFilter):
    assert parse_filter(text) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("address = ", "not a condition in SQL (line 1"),
        ("address = X'zz'", "not a condition in SQL"),
        ("1 = 1) or (2 = 2", "not a condition in SQL"),
        ("block_number > 1; drop table logs", "not one condition"),
        ("select 1", "a term that a node cannot evaluate: SELECT 1"),
        ("true", "a term that a node cannot evaluate: TRUE"),
        ("data = X'00'", "a term that a node cannot evaluate: data = "),
        ("block_number <> 5", "a term that a node cannot evaluate"),
        ("not block_number = 5", "a term that a node cannot evaluate"),
        ("topic1 is null", "a term that a node cannot evaluate"),
        ("block_number = 1 or block_number = 2", "a term that a node cannot evaluate"),
        ("block_number > -1", "which is not a whole number"),
        ("block_number > 1.5", "which is not a whole number"),
        ("block_number > topic0", "which is not a whole number"),
        (f"address in (select {sql(A)})", "a term that a node cannot evaluate"),
        (f"address = {sql(A)} or topic0 = {sql(T)}", "joins address and topic0 by `or`"),
        (f"address = {sql(A)} or (address = {sql(B)} and topic0 = {sql(T)})", "a term that a node cannot evaluate"),
        (f"address = {sql(A)} and address = {sql(B)}", "matches nothing"),
        (f"address = {sql(T)}", "The filter compares address with"),
        (f"topic0 = {sql(A)}", "The filter compares topic0 with"),
        ("topic0 = 'Transfer'", "The filter compares topic0 with 'Transfer'"),
        ("topic0 = eth_event_selector('Transfer')", "'Transfer' is not a signature of an event"),
        ("topic0 = eth_event_selector(address)", "The filter compares topic0 with"),
        ("(" * 5000, "not a condition in SQL"),
    ],
)
def test_filter_that_cannot_be_asked_is_refused(text: str, message: str):
    with pytest.raises(InvalidValue) as caught:
        parse_filter(text)
    assert message in caught.value.message
    assert caught.value.hint


def test_query_for_a_range_of_blocks():
    assert LogFilter().query(0, 255) == {"fromBlock": "0x0", "toBlock": "0xff"}
    text = f"(address = {sql(B)} or address = {sql(A)}) and topic1 = {sql(T)}"
    assert parse_filter(text).query(1, 2) == {
        "fromBlock": "0x1",
        "toBlock": "0x2",
        "address": [f"0x{A.hex()}", f"0x{B.hex()}"],
        "topics": [None, [f"0x{T.hex()}"]],
    }
