"""Manifests of root datasets that ingest CSV files with a header."""

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
    """Return the source of the files in the folder `in`; `more` are further keys of its fetch step."""
    return f"SetPollingSource\n      fetch: {{kind: FilesGlob, path: in/*.csv, order: ByName{more}}}"


def csv_source(name: str, fields: str, *, source: str = PUSHED, merge: str = "{kind: Append}") -> str:
    """Return a manifest.

    Args:
        name: name of the dataset.
        fields: fields of its schema.
        source: the kind of the source and its keys, such as `PUSHED` or `polled()`.
        merge: the merge strategy.
    """
    return _MANIFEST.format(name=name, fields=fields, source=source, merge=merge)
