"""Example documents: a relay over one file, as a starting point for operators."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from odfpy.federation.authority import write_new

_HEAD: Final = "apiVersion: odf/web/v1\n"
_FILES: Final = {
    "entities.yaml": _HEAD
    + """\
kind: Entity
spec:
  name: customer
  information:
    - {name: custkey, arrow_dtype: Int64}
    - {name: name, arrow_dtype: Utf8}
    - {name: acctbal, arrow_dtype: "Decimal128(15, 2)"}
""",
    "data.yaml": _HEAD
    + """\
kind: LocalData
spec:
  name: crm
  connection:
    kind: files # or dataset, flight, trino, duckdb, postgres
    tables:
      customers: {location: customers.csv}
  data_sources:
    - name: customers
      source_sql: customers # a table, or a SELECT
      fields:
        - {name: id}
        - {name: name}
        - {name: cents, path: balance_cents}
      default_permission: # what everybody with a certificate sees; nothing without it
        allowed_columns: [id, name]
        allowed_rows: cents > 0
""",
    "mappings.yaml": _HEAD
    + """\
kind: LocalMapping
spec:
  entity: customer
  mappings:
    - data: crm
      source: customers
      fields:
        - {field: id, information: custkey}
        - {field: name, information: name}
        - {field: cents, information: acctbal, transformation: "CAST({v} AS DECIMAL(15, 2)) / 100"}
""",
    "users.yaml": _HEAD
    + """\
kind: User
spec:
  name: ann
  attributes: {department: audit}
  permissions: # in the place of the default
    - {data: crm, source: customers, allowed_columns: "*", allowed_rows: "true"}
""",
    "peers.yaml": """\
# A peer, and how its words are ours. Take the signs away once you know its endpoint and have its certificate.
#
# apiVersion: odf/web/v1
# kind: PeerRelay
# spec:
#   name: global
#   flight_endpoint: grpc+tls://global.example.com:50051
#   certificates: [global.pem]
# ---
# apiVersion: odf/web/v1
# kind: RemoteMapping
# spec:
#   entity: customer
#   relay: global
#   remote_entity: client
#   information:
#     - {information: custkey, remote: id}
#     - {information: acctbal, remote: balance, transformation: "{v} * 1.1"}
""",
    "customers.csv": "id,name,balance_cents\n1,Ann,1250\n2,Bob,-300\n3,Eve,99\n",
}


def write_examples(folder: Path) -> bool:
    """Write the documents into a folder, unless it has files already; returns whether they were written.

    Raises:
        OdfError: they cannot be written.
    """
    if folder.exists() and any(folder.iterdir()):
        return False
    for name, text in _FILES.items():
        write_new(folder / name, text, mode=0o644)
    return True
