"""Events of contracts: signatures, selectors, and what logs hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from odfpy.errors import InvalidValue
from odfpy.ethereum.events import EventSignature, NotOfThisEvent, Parameter, selector_of

TRANSFER = "Transfer(address indexed from, address indexed to, uint256 value)"


@pytest.mark.parametrize(
    ("signature", "selector"),
    [  # as block explorers show them
        (TRANSFER, "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
        ("Transfer(address,address,uint)", "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
        ("Approval(address,address,uint256)", "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925"),
        (
            "Sync(uint112 reserve0, uint112 reserve1)",
            "1c411e9a96e071241c2f21f7726b17ae89e3cab4c78be50e062b03a9fffbbad1",
        ),
        (
            "TransferBatch(address,address,address,uint256[],uint256[])",
            "4a39dc06d4c0dbc64b70af90fd698a233a518aa5d07e595d983b8c0526c8f7fb",
        ),
    ],
)
def test_selector(signature: str, selector: str):
    assert selector_of(signature).hex() == selector


def test_signature_may_stand_on_several_lines():
    text = "\n event Burn(\n  address indexed from,\n  uint amount\n);\n"
    parameters = (Parameter("address", "from", True), Parameter("uint256", "amount", False))
    assert EventSignature.parse(text) == EventSignature("Burn", parameters)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Transfer", "not a signature of an event"),
        ("Transfer(address", "not a signature of an event"),
        ("Transfer(address) anonymous", "not a signature of an event"),
        ("Transfer((address,uint256) pair)", "not a signature of an event"),
        ("Transfer(address from to)", "Parameter 'address from to'"),
        ("Transfer(,)", "Parameter ''"),
        ("Transfer(adress from)", "'adress' are not supported"),
        ("Transfer(uint7 x)", "'uint7' is not a type"),
        ("Transfer(bytes33 x)", "'bytes33' is not a type"),
        ("Transfer(function x)", "'function' are not supported"),
        ("Transfer(fixed128x18 x)", "'fixed128' | Parameter"),
    ],
)
def test_signature_that_is_none_is_refused(text: str, message: str):
    with pytest.raises(InvalidValue) as caught:
        EventSignature.parse(text)
    assert any(part in caught.value.message for part in message.split(" | "))


@pytest.mark.parametrize("text", ["Transfer(address, uint256 value)", "Transfer(address a, bool a)", "Ping()"])
def test_struct_needs_names(text: str):
    with pytest.raises(InvalidValue, match="need names, each its own"):
        EventSignature.parse(text).arrow_type()


@pytest.mark.parametrize(
    ("solidity", "arrow"),
    [
        ("bool", pa.bool_()),
        ("int8", pa.int32()),
        ("int32", pa.int32()),
        ("uint32", pa.uint32()),
        ("int40", pa.int64()),
        ("uint64", pa.uint64()),
        ("int72", pa.string()),
        ("uint128", pa.string()),
        ("uint256", pa.string()),
        ("address", pa.binary()),
        ("bytes", pa.binary()),
        ("bytes4", pa.binary()),
        ("string", pa.string()),
        ("uint8[]", pa.list_(pa.field("item", pa.uint32(), nullable=False))),
    ],
)
def test_types_in_arrow(solidity: str, arrow: pa.DataType):
    struct = EventSignature.parse(f"E({solidity} value)").arrow_type()
    assert struct == pa.struct([pa.field("value", arrow, nullable=False)])


def test_indexed_parameters_come_first():
    struct = EventSignature.parse("E(bool a, bool indexed b, bool c, bool indexed d)").arrow_type()
    assert [field.name for field in struct] == ["b", "d", "a", "c"]


def test_what_is_only_there_as_a_hash_is_bytes():
    event = EventSignature.parse("E(string indexed text, uint256[] indexed list)")
    assert [field.type for field in event.arrow_type()] == [pa.binary(), pa.binary()]
    decoded = event.decode([event.selector, b"\1" * 32, b"\2" * 32], b"")
    assert decoded == {"text": b"\1" * 32, "list": b"\2" * 32}


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "int256": st.integers(-(2**255), 2**255 - 1),
    "uint256": st.integers(0, 2**256 - 1),
    "address": st.binary(min_size=20, max_size=20),
    "bytes": st.binary(max_size=100),
    "bytes8": st.binary(min_size=8, max_size=8),
    "string": st.text(max_size=40),
    "int64[]": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4),
}


@st.composite
def parameters(draw: st.DrawFn) -> tuple[str, bool, Any]:
    """A type, whether it is indexed, and a value."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    is_short = not kind.endswith("]") and kind not in ("bytes", "string")
    return kind, is_short and draw(st.booleans()), draw(VALUES[kind])


@given(st.lists(parameters(), min_size=1, max_size=6).filter(lambda drawn: sum(flag for _, flag, _ in drawn) <= 3))
def test_every_value_comes_back(drawn: list[tuple[str, bool, Any]]):
    parts = [f"{kind}{' indexed' if flag else ''} p{at}" for at, (kind, flag, _) in enumerate(drawn)]
    event = EventSignature.parse(f"E({', '.join(parts)})")
    topics = [encode([kind], [value]) for kind, flag, value in drawn if flag]
    body = encode([kind for kind, flag, _ in drawn if not flag], [value for _, flag, value in drawn if not flag])

    decoded = event.decode([event.selector, *topics], body)
    values = [str(value) if kind in ("int256", "uint256") else value for kind, _, value in drawn]
    assert decoded == {f"p{at}": value for at, value in enumerate(values)}
    assert pa.array([decoded], event.arrow_type()).to_pylist() == [decoded]


@pytest.mark.parametrize(
    ("topics", "data", "message"),
    [
        ([], b"", "the first topic differs"),
        ([b"\0" * 32], b"", "the first topic differs"),
        ([selector_of(TRANSFER)], b"", "it has 0 indexed parameters, not 2"),
        ([selector_of(TRANSFER), b"\0" * 32, b"\0" * 32], b"\0" * 31, "31"),
        ([selector_of(TRANSFER), b"\1" * 32, b"\0" * 32], b"\0" * 32, "[Pp]adding"),
    ],
)
def test_log_of_another_form_is_told(topics: list[bytes], data: bytes, message: str):
    with pytest.raises(NotOfThisEvent, match=message):
        EventSignature.parse(TRANSFER).decode(topics, data)
