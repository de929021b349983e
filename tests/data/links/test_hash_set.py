"""Sets of hashes in arrays: the same as Python's, whatever comes in whatever order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.hash_set import HashSet, as_names, name_of, names_in, positions
from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash

# Digests that end in zeros are what arrays of numpy may lose.
digests = st.one_of(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 20).map(lambda number: bytes([number]) + bytes(31)),
    st.just(bytes(32)),
)
hashes = st.builds(Multihash, st.sampled_from([SHA3_256.code, BLAKE3.code]), digests)
others = st.builds(Multihash, st.just(0x12), st.binary(max_size=40))
texts = st.one_of(hashes.map(str), others.map(str), hashes.map(lambda name: str(name).upper()), st.text(), st.none())


@given(st.lists(st.lists(hashes, max_size=8), max_size=12), st.lists(hashes))
def test_it_is_what_a_set_of_python_is(batches: list[list[Multihash]], asked: list[Multihash]) -> None:
    found, model = HashSet(), set[Multihash]()
    for batch in batches:
        new = found.add(as_names(batch))
        assert {name_of(item) for item in new.tolist()} == set(batch) - model
        model |= set(batch)
        assert len(found) == len(model)
    assert sorted(found) == sorted(model)
    assert [name in found for name in [*asked, *model]] == [name in model for name in [*asked, *model]]
    assert sorted(name for part in found.parts(3) for name in part) == sorted(model)


@given(st.lists(texts))
def test_texts_are_hashes_in_their_one_form_or_something_else(values: list[str | None]) -> None:
    names, odd = names_in(pa.array(values, pa.string()))
    assert len(names) == len(values)
    for at, (item, text) in enumerate(zip(names.tolist(), values, strict=True)):
        if item:
            assert str(name_of(item)) == text
        else:
            assert (text is None) == (at not in odd)
            assert odd.get(at) == text


@given(st.lists(texts), st.integers(0, 5))
def test_a_part_of_an_array_and_a_dictionary_read_the_same(values: list[str | None], first: int) -> None:
    array = pa.array(values, pa.string())
    whole, odd = names_in(array)
    part, odd_in_part = names_in(array.slice(first))
    assert part.tolist() == whole[first:].tolist()
    assert odd_in_part == {at - first: text for at, text in odd.items() if at >= first}
    packed, odd_in_packed = names_in(array.dictionary_encode())
    assert (packed.tolist(), odd_in_packed) == (whole.tolist(), odd)


@given(st.lists(texts))
def test_unusual_texts_of_hashes_count_too(values: list[str | None]) -> None:
    found = HashSet()
    names, odd = names_in(pa.array(values, pa.string()))
    found.add(names)
    found.add_texts(odd.values())
    for text in filter(None, values):
        try:
            name = Multihash.parse(text)
        except ValueError:
            continue
        except Exception:  # noqa: BLE001 - no hash at all
            continue
        assert name in found


@given(st.sets(hashes), st.lists(hashes))
def test_positions_are_those_in_the_sorted_array(known: set[Multihash], asked: list[Multihash]) -> None:
    run = np.sort(as_names(known))
    ordered = sorted(known, key=lambda name: name.to_bytes())
    found = positions(run, as_names(asked)).tolist()
    assert found == [ordered.index(name) if name in known else -1 for name in asked]


def test_something_else_is_in_no_set() -> None:
    found = HashSet()
    found.add(as_names([Multihash.of(b"")]))
    assert str(Multihash.of(b"")) not in found
    assert Multihash(0x12, bytes(32)) not in found
