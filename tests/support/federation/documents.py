"""Documents of relays for tests: small and consistent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from odfpy.federation.model.reading import Declared, read_documents

ENTITY = {
    "name": "lineitem",
    "information": [
        {"name": "orderkey", "arrow_dtype": "Int64"},
        {"name": "tax", "arrow_dtype": "Float64"},
        {"name": "returnflag", "arrow_dtype": "Utf8"},
    ],
}
DATA = {
    "name": "tpch",
    "connection": {"kind": "files", "tables": {"lines": {"location": "lines.csv"}}},
    "data_sources": [
        {
            "name": "lineitem",
            "source_sql": "lines",
            "fields": [{"name": "l_orderkey"}, {"name": "l_tax", "path": "tax"}, {"name": "flag"}],
            "default_permission": {"allowed_columns": ["l_orderkey", "flag"], "allowed_rows": "flag = 'N'"},
        }
    ],
}
MAPPING = {
    "entity": "lineitem",
    "mappings": [
        {
            "data": "tpch",
            "source": "lineitem",
            "fields": [
                {"field": "l_orderkey", "information": "orderkey"},
                {"field": "l_tax", "information": "tax", "transformation": "{v} / 100"},
                {"field": "flag", "information": "returnflag"},
            ],
        }
    ],
}
PEER = {"name": "global", "flight_endpoint": "grpc+tls://127.0.0.1:50051"}
REMOTE = {
    "entity": "lineitem",
    "relay": "global",
    "remote_entity": "lines",
    "sql": "SELECT *, tax * extendedprice AS tax_amount FROM lines",
    "information": [
        {"information": "orderkey", "remote": "orderkey"},
        {"information": "tax", "remote": "tax_amount", "transformation": "{v} * 100"},
    ],
}
USER = {
    "name": "ann",
    "attributes": {"country": "DE"},
    "permissions": [{"data": "tpch", "source": "lineitem", "allowed_columns": "*", "allowed_rows": "true"}],
}
ALL = {
    "Entity": ENTITY,
    "LocalData": DATA,
    "LocalMapping": MAPPING,
    "PeerRelay": PEER,
    "RemoteMapping": REMOTE,
    "User": USER,
}


def document(kind: str, spec: Any) -> str:
    """Return a document; JSON is YAML."""
    return json.dumps({"apiVersion": "odf/web/v1", "kind": kind, "spec": spec}, indent=1)


def write(folder: Path, **changed: Any) -> Path:
    """Return a file with all of the documents.

    Args:
        folder: target folder.
        changed: specs by kind that replace the usual ones; None omits the kind.
    """
    specs = {**ALL, **changed}
    folder.mkdir(exist_ok=True)
    texts = [document(kind, spec) for kind, spec in specs.items() if spec is not None]
    (folder / "web.yaml").write_text("\n---\n".join(texts))
    return folder


def declared(folder: Path, **changed: Any) -> list[Declared]:
    """Return the declarations in such a file."""
    return read_documents([write(folder, **changed)])


def with_changed(tree: Any, path: str, value: Any) -> Any:
    """Return a copy of a tree with another value somewhere.

    Args:
        tree: a JSON tree.
        path: path with dots: `data_sources.0.name`.
        value: the new value; ... removes the current one.
    """
    copied = json.loads(json.dumps(tree))
    *above, last = path.split(".")
    inner = copied
    for part in above:
        inner = inner[int(part)] if isinstance(inner, list) else inner[part]
    if value is ...:
        del inner[last]
    elif isinstance(inner, list) and int(last) == len(inner):
        inner.append(value)
    else:
        inner[int(last) if isinstance(inner, list) else last] = value
    return copied
