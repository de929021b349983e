"""Texts without anything but comments, which are told apart without the library."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.codec.yaml import load_documents
from odfpy.codec.yaml_trees import load
from odfpy.errors import MalformedManifest

LINES = st.sampled_from(
    [
        "",
        "#",
        "# a: 1",
        "#\u00e4\u20ac",
        " # a",
        "\t# a",
        "a: 1",
        "---",
        "#\x00",
        "#\x85b: 2",
        "#\u2028b: 2",
        "# \ufeff",
    ]
)


def outcome(read: object, text: str) -> object:
    try:
        return [document.tree for document in read(text)]  # type: ignore[operator]
    except MalformedManifest as error:
        return error.message


@given(st.lists(LINES, max_size=4).map("\n".join))
def test_it_makes_no_difference_but_in_time(text: str) -> None:
    assert outcome(load_documents, text) == outcome(load, text)


@pytest.mark.parametrize("text", ["", "\n\n", "# settings\n#a: 1\n", "#a"])
def test_the_library_is_not_imported(text: str) -> None:
    program = f"import sys; from odfpy.codec.yaml import load_documents; print(load_documents({text!r}), 'yaml' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[] False\n"
