"""The dataclasses are the tables of the wire format: same fields, same types, same order, same unions and enums.

`metadata-fields.txt` is the layout of the specification, one type per line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

import pytest
from support.fixtures import FIXTURES

from odfpy.chain.block import MetadataBlock
from odfpy.chain.encoding import _Manifest
from odfpy.codec.shape import (
    DatasetReference,
    Enumeration,
    Field,
    Integer,
    Leaf,
    OneOf,
    Record,
    Sequence,
    Shape,
    fields_of,
    kind_of,
)
from odfpy.codec.wire import ENUM_BITS
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.engine.contract import TransformRequest, TransformResponseInvalidQuery, TransformResponseSuccess

LINES = re.findall(
    r"^(table|union|enum|struct) (\w+) ?(.*)$", (FIXTURES / "metadata-fields.txt").read_text(), re.MULTILINE
)
TABLES = {name: [part for part in rest.split("; ") if part] for what, name, rest in LINES if what == "table"}
UNIONS = {name: rest.split(", ") for what, name, rest in LINES if what == "union"}
ENUMS = {name: rest.split(", ") for what, name, rest in LINES if what == "enum"}

LEAVES = {
    str: "string",
    bool: "bool",
    bytes: "[ubyte]",
    Multihash: "[ubyte]",
    DatasetId: "[ubyte]",
    Timestamp: "Timestamp",
    ExtraAttributes: "ExtraAttributes",
}


def line_of(field: Field, theirs: str) -> str:
    """A field as the layout would write it; names of records and unions are taken from there."""
    scalar = isinstance(field.shape, Integer | Enumeration) or field.shape == Leaf(bool)
    null = " = null" if scalar and field.optional else ""
    return f"{field.name}: {type_of(field.shape, theirs.partition(': ')[2].removesuffix(' = null'))}{null}"


def type_of(shape: Shape, theirs: str) -> str:
    match shape:
        case Integer(range_):
            return f"{'' if range_.signed else 'u'}int{range_.bits}"
        case Leaf(type_):
            return LEAVES[type_]
        case DatasetReference():
            return "string"
        case Enumeration(type_):
            return type_.__name__
        case Sequence(OneOf()):
            return f"[{theirs.strip('[]').removesuffix('Wrapper')}Wrapper]"
        case Sequence(item):
            return f"[{type_of(item, theirs.strip('[]'))}]"
        case OneOf() | Record():
            return theirs


def inner(shape: Shape, theirs: str) -> Iterator[tuple[str, type]]:
    """The tables that a field leads to, with our types for them."""
    name = theirs.removesuffix(" = null").strip("[]").removesuffix("Wrapper")
    match shape:
        case Sequence(item):
            yield from inner(item, name)
        case Record(type_):
            yield name, type_
        case OneOf(members):
            assert len(UNIONS[name]) == len(members), name
            for member, wire_name in zip(members, UNIONS[name], strict=True):
                assert wire_name in (f"{name}{kind_of(member)}", kind_of(member))
                yield wire_name, member
        case Enumeration(type_):
            yield name, type_


def everything(name: str, record: type) -> dict[str, type]:
    """All types that a record leads to, by their names on the wire."""
    found: dict[str, type] = {}
    waiting = [(name, record)]
    while waiting:
        name, record = waiting.pop()
        if name in found:
            assert found[name] is record
            continue
        found[name] = record
        if not issubclass(record, Enum):
            for field, theirs in zip(fields_of(record), TABLES[name], strict=False):
                waiting += inner(field.shape, theirs.partition(": ")[2])
    return found


METADATA = {**everything("MetadataBlock", MetadataBlock), "Manifest": _Manifest, "ExtraAttributes": ExtraAttributes}


@pytest.mark.parametrize("name", sorted(name for name in METADATA if name not in ENUMS))
def test_table_has_the_fields_of_the_wire_format(name: str):
    ours = fields_of(METADATA[name])
    assert [line_of(field, theirs) for field, theirs in zip(ours, TABLES[name], strict=True)] == TABLES[name]


@pytest.mark.parametrize("name", sorted(name for name in METADATA if name in ENUMS))
def test_enum_has_the_values_of_the_wire_format(name: str):
    assert [member.value for member in METADATA[name]] == ENUMS[name]
    assert ENUM_BITS.get(name, 32) == (16 if name == "TimeUnit" else 32)


def test_every_table_of_metadata_is_covered():
    engine = re.compile(r"Transform(Request|Response)|RawQuery|Watermark$|DatasetVocabulary$|\w+Wrapper$")
    assert {name for name in [*TABLES, *ENUMS] if not engine.match(name)} == set(METADATA)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        *everything("TransformRequest", TransformRequest).items(),
        ("TransformResponseSuccess", TransformResponseSuccess),
        ("TransformResponseInvalidQuery", TransformResponseInvalidQuery),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_engine_contract_begins_with_the_fields_of_the_specification(name: str, record: type):
    ours = fields_of(record)[: len(TABLES[name])]
    assert [line_of(field, theirs) for field, theirs in zip(ours, TABLES[name], strict=True)] == TABLES[name]
