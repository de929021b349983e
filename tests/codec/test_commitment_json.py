"""The form of JSON that commitments hash: as the reference's node writes it (its library's Python binding, 0.9.3)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.codec.canonical_json import canonical_json
from odfpy.codec.commitment_json import commitment_json
from odfpy.errors import MalformedData

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1E0"),
        (0.1, "1E-1"),
        (123.456, "1.23456E2"),
        (-9.25, "-9.25E0"),
        (1e300, "1E300"),
        (5e-324, "5E-324"),
        (123456789012345680.0, "1.2345678901234568E17"),
        (0.0, "0E0"),
        (-0.0, "-0E0"),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        ('é\u2028\x7f\x01\n/"\\\U0001f600', r'"\u00e9\u2028\u007f\u0001\n/\"\\\ud83d\ude00"'),
        ("\b\f\t\r\v", r'"\b\f\t\r\u000b"'),
        ({"\U0001f600": 1, "\ue000": [], "a": {}}, r'{"a":{},"\ue000":[],"\ud83d\ude00":1}'),
        ([True, None, False], "[true,null,false]"),
    ],
)
def test_as_the_reference_writes_it(value: object, text: str):
    assert commitment_json(value) == text.encode()


@given(JSON)
def test_what_is_written_is_the_same_value(tree: object):
    assert json.loads(commitment_json(tree)) == tree


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(st.characters(max_codepoint=126)),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(max_codepoint=126)), inner),
    max_leaves=12,
)


@given(PLAIN)
def test_texts_in_ascii_and_whole_numbers_are_written_as_rfc_8785_does(tree: object):
    assert commitment_json(tree) == canonical_json(tree)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {"a": {1, 2}}])
def test_what_is_not_json_is_refused(value: object):
    with pytest.raises(MalformedData, match="No canonical JSON"):
        commitment_json(value)
