"""Sealed texts: nobody else reads or changes them, and each has one form."""

from __future__ import annotations

import pytest

from odfpy.http.seal import Seal


def test_what_was_sealed_opens_for_its_use_only() -> None:
    seal = Seal()
    text = seal.close({"a": [1, None]}, "this")
    assert seal.open(text, "this") == {"a": [1, None]}
    assert seal.open(text, "that") is None
    assert Seal().open(text, "this") is None
    assert seal.open(f"{'A' if text[0] != 'A' else 'B'}{text[1:]}", "this") is None


@pytest.mark.parametrize("tree", [1, 12, 123])  # texts that end with two, four or no bits that base64 does not use
def test_a_sealed_text_has_no_other_form(tree: int) -> None:
    """What is good once is remembered by its text."""
    seal = Seal()
    text = seal.close(tree, "this")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [f"....{text}", f"{text}=", f"{text}\n", f"{text[:5]} {text[5:]}", f"{text}=="]
    others += [text[:-1] + letter for letter in letters if letter != text[-1]]
    assert [other for other in others if seal.open(other, "this") is not None] == []
