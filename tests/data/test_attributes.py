"""Extra attributes: JSON objects whose text is hashed."""

from __future__ import annotations

import pytest

from odfpy.data.attributes import ExtraAttributes
from odfpy.errors import InvalidValue


def test_written_sorted_and_without_spaces():
    assert ExtraAttributes.of({"b": {"z": 1, "a": [1, 2]}, "a": "é"}).entries == '{"a":"é","b":{"z":1,"a":[1,2]}}'


def test_read_text_is_kept_as_it_is():
    text = '{ "b": 1.0, "a": "\\u00e9" }'
    assert ExtraAttributes(text).entries == text
    assert ExtraAttributes(text).to_dict() == {"b": 1.0, "a": "é"}


def test_of_two_equal_keys_the_last_counts():
    assert ExtraAttributes('{"a": 1, "a": 2}').to_dict() == {"a": 2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"a"',
        "{",
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": [Infinity]}',
        '{"a": -Infinity}',
        '{"a": 1,}',
        '{"a": "\\ud800"}',
        '{"\\udc00": 1}',
        '{"a": ' + "[" * 5_000 + "]" * 5_000 + "}",
        '{"a": ' + "[" * 100 + "]" * 100 + "}",
        '{"a":' * 200 + "1" + "}" * 200,
        "[" * 1_000_000,
        '{"a": ' + "1" * 10_000 + "}",
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_what_is_no_json_object_is_refused(text: str):
    with pytest.raises(InvalidValue):
        ExtraAttributes(text)


def test_nesting_up_to_the_limit_is_fine():
    text = '{"a":' + "[" * 99 + "]" * 99 + "}"
    assert ExtraAttributes.of(ExtraAttributes(text).to_dict()).entries == text


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), b"bytes", {1, 2}, object(), "\ud800"])
def test_values_that_json_lacks_are_refused(value: object):
    with pytest.raises(InvalidValue):
        ExtraAttributes.of({"a": value})
