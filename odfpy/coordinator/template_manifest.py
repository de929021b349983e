"""Commented manifests as a starting point."""

from __future__ import annotations

from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias

_ROOT = """\
# A root dataset ingests data from outside. Edit this file, then run `odf add` with it.
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    # Where the data comes from. With SetPollingSource, `odf pull` gets it;
    # with AddPushSource instead, `odf ingest` hands it in.
    - kind: SetPollingSource
      fetch:
        kind: FilesGlob              # or Url, with `url: https://...`
        path: data/*.csv             # from the folder of the workspace
        order: ByName
        eventTime:                   # event time of rows that have no event_time column
          kind: FromPath
          pattern: (\\d+-\\d+-\\d+)\\.csv
          timestampFormat: '%Y-%m-%d'
      read:
        kind: Csv                    # or NdJson, Json, Parquet
        header: true
        schema:
          fields:
            # A type that is not an Option is required: it is never null.
            - {{name: event_time, type: {{kind: Timestamp, unit: Millisecond, timezone: UTC}}}}
            - {{name: id, type: Int64}}
            - {{name: name, type: {{kind: Option, inner: String}}}}
      # SQL over the view `input`, if the data needs work before it is merged.
      # preprocess:
      #   kind: Sql
      #   engine: datafusion
      #   query: select event_time, id, upper(name) as name from input
      merge:
        # Append: every row is new. Ledger: rows with a new key. Snapshot: the file is the whole current state.
        # UpsertStream: the last row of a key wins. ChangelogStream: rows bring their own `op`.
        kind: Ledger
        primaryKey: [id]
    - kind: SetInfo
      description: What this dataset is about, in one line
      keywords: [example]
    - kind: SetLicense
      shortName: CC0-1.0
      name: CC0 1.0 Universal
      spdxId: CC0-1.0
      websiteUrl: https://creativecommons.org/publicdomain/zero/1.0/
"""

_DERIVATIVE = """\
# A derivative dataset is computed from others. Edit this file, then run `odf add` with it.
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs:
        - datasetRef: com.example.input    # name or id of a dataset
          alias: input                     # its name in the query
      transform:
        kind: Sql
        engine: spark
        # event_time must be among the columns; offset, op and system_time are taken care of.
        query: |
          select event_time, id, name
          from input
          where id > 100
    - kind: SetInfo
      description: What this dataset is about, in one line
      keywords: [example]
"""


def template(name: str, kind: DatasetKind) -> str:
    """Return a commented manifest for a new dataset.

    Raises:
        InvalidValue: the name is invalid.
    """
    DatasetAlias.parse(name)
    return (_ROOT if kind is DatasetKind.ROOT else _DERIVATIVE).format(name=name)
