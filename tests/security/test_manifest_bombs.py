"""Small texts that would keep a reader of manifests busy for long, or take its memory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from odfpy.codec.yaml import load_documents
from odfpy.coordinator.manifests import load
from odfpy.errors import MalformedManifest, OdfError, TooManyNodes

MIB = 1 << 20
LAUGHS = "a0: &a0 [x, x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))

BOMBS: dict[str, tuple[str, type[OdfError], str]] = {
    "documents": ("---\n" * MIB, TooManyNodes, "more than 10000 documents"),
    "values": ("- 1\n" * MIB, TooManyNodes, "more than 300000 values"),
    "values in one line": (f"[{'1,' * MIB}]", TooManyNodes, "more than 300000 values"),
    "keys": ("".join(f"k{number}: 1\n" for number in range(200_000)), TooManyNodes, "300000 values"),
    "empty keys": ("? \n" * MIB, MalformedManifest, "twice|300000"),
    "aliases": (LAUGHS, MalformedManifest, r"aliases \(\*a0\) are not supported"),
    "an alias of itself": ("&a [*a]", MalformedManifest, "aliases"),
    "merged": ("a: &a {b: 1}\nc: {<<: *a}", MalformedManifest, "aliases"),
    "lists in lists": ("[" * 4 * MIB, MalformedManifest, "nested more than 100 levels"),
    "lists in lists, block by block": ("- " * 4 * MIB, MalformedManifest, "nested more than 100 levels"),
    "mappings in mappings": ("{a: " * MIB, MalformedManifest, "nested more than 100 levels"),
    "complex keys": ("? " * 4 * MIB, MalformedManifest, "nested more than 100 levels"),
    "deeper by the line": (
        "".join(f"{' ' * depth}a:\n" for depth in range(5000)),
        MalformedManifest,
        "nested more than 100 levels",
    ),
    "directives": ("%TAG !a! b\n" * MIB, MalformedManifest, "not YAML"),
}


@pytest.mark.parametrize(("text", "error", "says"), BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_before_they_cost_anything(text: str, error: type[OdfError], says: str) -> None:
    begun = time.process_time()
    with pytest.raises(error, match=says):
        load_documents(text)
    assert time.process_time() - begun < 3, "seconds; millions of values took half a minute"


@pytest.mark.parametrize(
    "text", ["a: " + "x " * 4 * MIB, "#\n" * 4 * MIB, f'a: "{chr(10) * 4 * MIB}"', "a: |\n" + " x\n" * 2 * MIB]
)
def test_long_texts_of_few_values_are_read_in_linear_time(text: str) -> None:
    begun = time.process_time()
    load_documents(text)
    assert time.process_time() - begun < 3


def test_a_key_of_a_megabyte_is_not_compared_or_repeated(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(f"? {'k' * MIB}\n: 1\nkind: DatasetSnapshot\nversion: 1\ncontent: {{? {'n' * MIB}\n : 1}}\n")
    begun = time.process_time()
    with pytest.raises(MalformedManifest) as caught:
        load([file])
    assert time.process_time() - begun < 3
    assert len(caught.value.message) < 2000


def test_a_wide_manifest_is_read() -> None:
    (document,) = load_documents("columns:\n" + "".join(f"- {{name: c{n}, type: INT}}\n" for n in range(20_000)))
    assert len(document.tree["columns"]) == 20_000
    assert len(load_documents("--- {a: 1}\n" * 5000)) == 5000
