"""The compiled module packs values as the portable functions do, and refuses what does not fit."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.slices import packing
from odfpy.data.slices.value_bytes import value_bytes

MODULES = [packing.compiled] if packing.compiled else []  # none where it could not be built
TYPES = (pa.bool_(), pa.int8(), pa.int16(), pa.float32(), pa.int64(), pa.decimal128(38, 2), pa.decimal256(50, 2))


def random_values(chance: random.Random, rows: int, nulls: float) -> list[int | None]:
    return [None if chance.random() < nulls else chance.randrange(100) for _ in range(rows)]


def arrays(nulls: float) -> list[pa.Array]:
    """Arrays of many types, long enough for all branches, that begin and end at any bit."""
    chance = random.Random(nulls)
    values = random_values(chance, 1000, nulls)
    texts = [None if value is None else "é" * (value % 40) for value in values]
    lists = [None if value is None else values[: value % 5] for value in values]
    made = [pa.array(values).cast(arrow) for arrow in TYPES]
    made += [pa.array(texts, arrow) for arrow in (pa.string(), pa.large_string(), pa.string_view())]
    nested = [None if items is None else [texts[:3], None] for items in lists]
    made += [pa.array(lists, pa.list_(pa.int64())), pa.array(nested, pa.list_(pa.list_(pa.string())))]
    return [array[first:last] for array in made for first, last in ((0, 1000), (3, 991), (8, 16), (5, 6))]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("nulls", [0, 0.01, 0.5, 0.99, 1])
def test_equals_the_portable_functions(module: ModuleType, nulls: float, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = [value_bytes(array) for array in arrays(nulls)]
    monkeypatch.setattr(packing, "compiled", None)
    assert compiled == [value_bytes(array) for array in arrays(nulls)]


@pytest.mark.parametrize("module", MODULES)
@given(
    data=st.binary(max_size=80),
    bounds=st.lists(st.integers(-3, 90), min_size=1, max_size=12),
    validity=st.binary(max_size=3),
    offset=st.integers(-2, 9),
)
def test_bounds_of_any_kind_are_refused_or_followed(
    module: ModuleType, data: bytes, bounds: list[int], validity: bytes, offset: int
) -> None:
    pairs = list(pairwise(bounds))
    is_right = all(0 <= start <= end <= len(data) for start, end in pairs) and 0 <= bounds[0] <= len(data)
    is_right = is_right and offset >= 0 and offset + len(pairs) <= 8 * len(validity)
    numbers = np.array(bounds, np.int32)
    if not is_right:
        with pytest.raises(ValueError, match=r"bounds are|bitmap is shorter"):
            module.prefixed(data, numbers, numbers, validity, offset)
        return
    expected = b""
    for row, (start, end) in enumerate(pairs):
        is_valid = validity[(offset + row) // 8] >> (offset + row) % 8 & 1
        expected += struct.pack("<Q", end - start) + data[start:end] if is_valid else b"\0"
    assert module.prefixed(data, numbers, numbers.astype(np.int64), validity, offset) == expected


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("fixed_width", (b"1234", b"\1", 0, 2, 4)),
        ("fixed_width", (b"1234", b"", 0, 1, 4)),
        ("fixed_width", (b"1234", b"\1", 8, 1, 4)),
        ("fixed_width", (b"1234", b"\1", -1, 1, 4)),
        ("fixed_width", (b"1234", b"\1", 0, -1, -4)),
        ("fixed_width", (b"1234", b"\1", 0, 1, 0)),
        ("fixed_width", (b"1234", b"\1", 0, 2**62, 2**62)),
        ("booleans", (b"", None, 0, 1)),
        ("booleans", (b"\1", b"", 0, 1)),
        ("booleans", (b"\1", b"\1", 1, 8)),
        ("booleans", (b"\1", None, 0, -1)),
        ("booleans", (b"\1", None, 2**63 - 1, 2)),
        ("prefixed", (b"1234", b"", b"", None, 0)),
        ("prefixed", (b"1234", np.array([0, 4]), np.array([0, 4, 4]), None, 0)),
        ("prefixed", (b"1234", np.array([0, 4]), np.array([4, 0]), None, 0)),
        ("prefixed", (b"1234", np.array([0, 4], np.int16), np.array([0, 4]), None, 0)),
        ("prefixed", (b"1234", np.array([0, 90, 4]), np.array([0, 1, 2]), None, 0)),
    ],
)
def test_wrong_sizes_are_refused(module: ModuleType, function: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        getattr(module, function)(*arguments)


def test_a_module_that_was_built_from_an_older_file_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "_VERSION", packing._VERSION + 1)
    assert packing._load() is None
