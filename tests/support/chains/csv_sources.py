"""Manifests of root datasets that take in CSV files with a header."""

from __future__ import annotations

_MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: {source}
      read:
        kind: Csv
        header: true
        schema: {{fields: [{fields}]}}
      merge: {merge}
"""
PUSHED = "AddPushSource\n      sourceName: default"


def polled(more: str = "") -> str:
    """The source that takes the files of the folder `in`; `more` are further keys of its fetch step."""
    return f"SetPollingSource\n      fetch: {{kind: FilesGlob, path: in/*.csv, order: ByName{more}}}"


def csv_source(name: str, fields: str, *, source: str = PUSHED, merge: str = "{kind: Append}") -> str:
    """A manifest.

    Args:
        name: of the dataset.
        fields: of its schema.
        source: the kind of the source and its keys, such as `PUSHED` or `polled()`.
        merge: the merge strategy.
    """
    return _MANIFEST.format(name=name, fields=fields, source=source, merge=merge)
