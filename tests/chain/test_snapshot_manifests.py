"""DatasetSnapshot manifests: read as people write them, and errors that say where."""

from __future__ import annotations

import pytest
from support.fixtures import KAMU

from odfpy.chain.block import DatasetSnapshot
from odfpy.chain.encoding import dump_snapshot, load_snapshots
from odfpy.chain.events import SetInfo
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import MalformedManifest

MANIFESTS = sorted((KAMU / "manifests").iterdir())

GOOD = """\
# What it is
kind: DatasetSnapshot
version: 1
content:
  name: com.example.rates
  kind: Root
  metadata:
    - kind: SetInfo
      description: |
        Exchange rates.
      keywords: [money]
"""


def test_manifest_is_read():
    info = SetInfo("Exchange rates.\n", ("money",))
    assert load_snapshots(GOOD, "x.yaml") == [
        DatasetSnapshot(DatasetAlias.parse("com.example.rates"), DatasetKind.ROOT, (info,))
    ]


def test_several_manifests_in_one_text():
    two = load_snapshots(GOOD + "---\n" + GOOD.replace("Root", "derivative").replace("rates", "trends"), "x.yaml")
    assert [(str(snapshot.name), snapshot.kind) for snapshot in two] == [
        ("com.example.rates", DatasetKind.ROOT),
        ("com.example.trends", DatasetKind.DERIVATIVE),
    ]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_of_the_reference_are_read_and_written(path):
    snapshots = load_snapshots(path.read_text(), path.name)
    assert snapshots
    for snapshot in snapshots:
        assert load_snapshots(dump_snapshot(snapshot), "again") == [snapshot]


def test_written_form():
    (snapshot,) = load_snapshots(GOOD, "x.yaml")
    assert dump_snapshot(snapshot) == GOOD.removeprefix("# What it is\n").replace(
        "    - kind: SetInfo\n      description: |\n        Exchange rates.\n      keywords: [money]\n",
        "  - kind: SetInfo\n    description: |\n      Exchange rates.\n    keywords:\n    - money\n",
    )


@pytest.mark.parametrize(
    ("old", "new", "message", "hint"),
    [
        (GOOD, "", "x.yaml: no manifest in it", "`odf new NAME` writes a template."),
        (GOOD, "# nothing\n---\n", "x.yaml: no manifest in it", "`odf new NAME` writes a template."),
        (GOOD, "- a\n", "x.yaml, line 1: a manifest is a mapping with `kind`, `version` and `content`", None),
        ("version: 1", "version: 2", "x.yaml, line 3, column 1: expected `version: 1`, found 2 at `version`", None),
        ("version: 1\n", "", "x.yaml, line 2, column 1: expected `version: 1`, found None at `version`", None),
        ("version: 1", "version: true", "x.yaml, line 3, column 1: expected `version: 1`, found True at `version`", None),
        (
            "kind: DatasetSnapshot", "kind: MetadataBlock",
            "x.yaml, line 2, column 1: expected `kind: DatasetSnapshot`, found 'MetadataBlock' at `kind`", None,
        ),
        ("content:", "contents:", "x.yaml, line 4, column 1: unknown key in a manifest at `contents`",
         "Known keys: kind, version, content"),
        (GOOD[GOOD.index("content") :], "", "x.yaml, line 2: `content` is missing", None),
        (GOOD[GOOD.index("content") :], "content:\n", "x.yaml, line 4, column 1: expected a mapping, found nothing at `content`",
         None),
        ("com.example.rates", "com..rates", "x.yaml, line 5, column 3: Not a dataset name: 'com..rates' at `content.name`",
         "Names are letters and digits, joined by single dots or hyphens: com.example.exchange-rates"),
        ("com.example.rates", "../../etc/passwd", "x.yaml, line 5, column 3: Not an account name: '../../etc' at `content.name`",
         "Names are letters and digits, joined by single dots or hyphens: com.example.exchange-rates"),
        ("kind: Root", "kind: Rooot", "x.yaml, line 6, column 3: unknown value 'Rooot' at `content.kind`", "Did you mean Root?"),
        ("keywords: [money]", "keyword: [money]",
         "x.yaml, line 11, column 7: unknown key in SetInfo at `content.metadata[0].keyword`", "Did you mean keywords?"),
        ("keywords: [money]", "keywords: [money, 1]",
         "x.yaml, line 11, column 25: expected text, found the number 1 at `content.metadata[0].keywords[1]`", "Put it in quotes."),
        ("keywords: [money]", "keywords: [money", "x.yaml, line 12, column 1: not YAML", None),
        ("  kind: Root\n", "  kind: Root\n  kind: Root\n", "x.yaml, line 7: the key 'kind' occurs twice", None),
    ],
)  # fmt: skip
def test_mistake_names_file_line_and_path(old: str, new: str, message: str, hint: str | None):
    assert old in GOOD
    with pytest.raises(MalformedManifest) as caught:
        load_snapshots(GOOD.replace(old, new), "x.yaml")
    assert caught.value.message.startswith(message)
    assert caught.value.hint == hint


def test_lines_count_from_the_beginning_of_the_file():
    with pytest.raises(MalformedManifest, match=r"x\.yaml, line 18, column 3: unknown value 'Rooot'"):
        load_snapshots(GOOD + "---\n" + GOOD.replace("Root", "Rooot"), "x.yaml")
