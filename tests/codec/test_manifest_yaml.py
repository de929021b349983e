"""YAML as people write it, and as nobody should: the tree, the line of every place, and errors that name the line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.processes.limits import run_limited

from odfpy.codec.yaml import load_documents
from odfpy.errors import MalformedManifest


def load(text: str) -> object:
    (document,) = load_documents(text)
    return document.tree


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 2024-01-01", {"a": "2024-01-01"}),
        ("a: 2024-01-01T00:00:00Z", {"a": "2024-01-01T00:00:00Z"}),
        ("a: yes", {"a": "yes"}),
        ("a: off", {"a": "off"}),
        ("a: true", {"a": True}),
        ("a: 'true'", {"a": "true"}),
        ("a: 12", {"a": 12}),
        ("a: 012", {"a": 12}),
        ("a: 12.50", {"a": 12.5}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: 0x10", {"a": "0x10"}),
        ("a: 1_000", {"a": "1_000"}),
        ("a: 12:30", {"a": "12:30"}),
        ("a: .nan", {"a": ".nan"}),
        ("a:", {"a": None}),
        ("a: ~", {"a": None}),
        ("a: ''", {"a": ""}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: >-\n  x\n  y\n", {"a": "x y"}),
        ("a: 'it''s'", {"a": "it's"}),
        ('a: "tab\\t"', {"a": "tab\t"}),
        ("[a, {b: [c]}]", ["a", {"b": ["c"]}]),
        ("a: &anchor x", {"a": "x"}),
        ("on: x", {"on": "x"}),
        ("<<: {a: b}", {"<<": {"a": "b"}}),
        ("# comment\na: b # another", {"a": "b"}),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object):
    assert load(text) == value


def test_big_numbers_keep_all_digits_or_stay_text():
    assert load(f"a: {10**60 + 1}") == {"a": 10**60 + 1}
    assert load(f"a: {'1' * 5000}") == {"a": "1" * 5000}


def test_several_documents_and_empty_ones():
    documents = load_documents("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n...\n")
    assert [document.tree for document in documents] == [{"a": 1}, {"b": 2}]
    assert [document.line for document in documents] == [3, 7]
    assert load_documents("") == []
    assert load_documents("# only a comment\n") == []


def test_every_place_has_its_line():
    (document,) = load_documents("a: 1\nb:\n  - x\n  - c:\n      d: 2\n\n  # comment\n  - {e: 3}\n")
    assert document.line_of(()) == 1
    assert document.line_of(("b",)) == 2
    assert document.line_of(("b", 0)) == 3
    assert document.line_of(("b", 1, "c", "d")) == 5
    assert document.line_of(("b", 2, "e")) == 8
    assert document.line_of(("b", 1, "c", "missing", "below")) == 4, "the deepest part that is there"


@pytest.mark.parametrize(
    ("problem", "text", "message"),
    [
        ("tab", "a: 1\n\tb: 2\n", r"Line 2, column 1: not YAML"),
        ("unclosed bracket", "a: [1, 2\nb: 3\n", r"Line 2, column \d+: not YAML"),
        ("unclosed quote", 'a: "x\nb: 3\n', r"Line \d+, column \d+: not YAML"),
        ("bad indentation", "a:\n  b: 1\n c: 2\n", r"Line 3, column 2: not YAML"),
        ("two values", "a: b: c\n", r"Line 1, column 5: not YAML"),
        ("duplicate key", "a: 1\nb: 2\na: 3\n", r"Line 3: the key 'a' occurs twice"),
        ("duplicate key below", "x:\n  - b: 2\n    b: 2\n", r"Line 3: the key 'b' occurs twice"),
        ("number as key", "a: 1\n2: x\n", r"Line 2: a key must be text"),
        ("list as key", "a: 1\n? [x]\n: y\n", r"Line 2: a key must be text"),
        ("nothing as key", "a: 1\n~: x\n", r"Line 2: a key must be text"),
        ("alias", "a: &x [1]\nb: *x\n", r"Line 2: aliases \(\*x\) are not supported"),
        ("alias of nothing", "a: 1\nb: *x\n", r"Line 2: aliases \(\*x\) are not supported"),
        ("tag", "a: 1\nb: !!python/object:os.system x\n", r"Line 2: tags .* are not supported"),
        ("text tag", "a: !!str 1\n", r"Line 1: tags .* are not supported"),
        ("binary tag", "a: !!binary aGVsbG8=\n", r"Line 1: tags .* are not supported"),
        ("NUL", "a: 1\nb: \x00\n", r"Line 2: the character U\+0000 cannot stand in YAML"),
        ("escape character", "a: 1\n\nb: \x1b[31m\n", r"Line 3: the character U\+001B cannot stand in YAML"),
        ("half of a surrogate pair", "a: \ud800\n", r"Line 1: the character U\+D800 cannot stand in YAML"),
        ("binary file", bytes(range(256)).decode("latin-1"), r"Line 1: the character U\+0000 cannot stand in YAML"),
        ("unknown escape", 'a: 1\nb: "\\q"\n', r"Line 2, column \d+: not YAML"),
        ("reserved indicator", "a: 1\nb: @x\n", r"Line 2, column 4: not YAML"),
        ("directive", "%YAML 3.0\n---\na: 1\n", r"Line 1, column \d+: not YAML"),
    ],
)
def test_malformed_text_is_an_error_with_its_line(problem: str, text: str, message: str):
    del problem
    with pytest.raises(MalformedManifest, match=message):
        load_documents(text)


ALIAS_BOMB = "\n".join(
    ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
)
BOMBS = {
    "aliases": ALIAS_BOMB,
    "brackets": "[" * 200_000,
    "braces": "{a: " * 100_000,
    "dashes": "- " * 100_000,
    "indentation": "\n".join(" " * n + "a:" for n in range(2_000)),
    "closed brackets": "[" * 10_000 + "]" * 10_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_in_bounded_time_and_memory(name: str):
    with pytest.raises(MalformedManifest, match=r"^Line \d+"):
        run_limited(load_documents, BOMBS[name], megabytes=300, seconds=20)


def test_nesting_has_a_limit():
    assert load("[" * 100 + "]" * 100)
    with pytest.raises(MalformedManifest, match="Line 1: nested more than 100 levels deep"):
        load("[" * 101 + "]" * 101)


@settings(max_examples=examples(80, 300))
@given(st.text(st.sampled_from("ab: -[]{}#&*!|>'\"%@`\n\t\\?,~\x00\ud800\u2028é1.0"), max_size=60))
def test_random_text_is_read_or_refused(text: str):
    problem = ""
    try:
        documents = load_documents(text)
    except MalformedManifest as error:
        documents, problem = [], error.message
    assert all(document.line >= 1 for document in documents)
    assert not problem or problem.startswith("Line ")
