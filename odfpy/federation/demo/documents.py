"""The documents of the relays of the reference web, as an operator would write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from odfpy.federation.demo.words import (
    OFFLINE,
    TABLES,
    TAX_AMOUNT,
    UNIT_PRICE,
    RelayWords,
    Word,
    columns_of,
    peers_of,
    words_of,
)
from odfpy.federation.model.documents import API_VERSION

ALL_ACCESS: Final = "all_access"
"""The user who may see all rows of lineitem."""

GUEST: Final = "guest"
"""A user unknown to all relays, with a certificate of the authority: they see only what is visible to everybody."""

MORE_LINES: Final = "more_lines.csv"
"""The file of na_us in addition to the tables."""

_DATA: Final = "tpch"
_MORE: Final = "more"
_ROWS: Final = {"lineitem": "l_returnflag = 'N'", "customer": "c_acctbal > 0", "orders": "true"}
_HIDDEN: Final = {"customer": frozenset(("address", "phone")), "orders": frozenset[str]()}
_LETTERS: Final = {"lineitem": "l_", "customer": "c_", "orders": "o_"}
_FROM_FRACTIONS: Final = {
    TAX_AMOUNT: "CAST(l_tax AS DOUBLE) * CAST(l_extendedprice AS DOUBLE)",
    UNIT_PRICE: "CAST(l_extendedprice AS DOUBLE) / CAST(l_quantity AS DOUBLE)",
}
_FROM_PERCENT: Final = {
    TAX_AMOUNT: "tax_percent / 100 * extendedprice",
    UNIT_PRICE: "extendedprice / quantity",
}
_FROM_PEER: Final = {TAX_AMOUNT: "tax * extendedprice", UNIT_PRICE: "extendedprice / quantity"}

Document = tuple[str, Mapping[str, Any]]
"""A kind, and its spec."""


def documents_of(relay: str, locations: Mapping[str, str], *, offline: bool) -> dict[str, str]:
    """Return the documents of a relay: their text by file name.

    Args:
        relay: name of the relay.
        locations: location of each relay, by name.
        offline: whether the relay that never responds is a peer.
    """
    peers = dict(peers_of(relay, offline=offline))
    remote = [("RemoteMapping", _remote(relay, peer, table)) for peer, tables in peers.items() for table in tables]
    files: dict[str, list[Document]] = {
        "entities.yaml": [("Entity", _entity(relay, table)) for table in TABLES],
        "data.yaml": [("LocalData", _local_data(relay)), *([("LocalData", _more())] if _has_more(relay) else [])],
        "mappings.yaml": [("LocalMapping", _local_mapping(relay, table)) for table in TABLES],
        "peers.yaml": [*(("PeerRelay", _peer(peer, locations)) for peer in peers), *remote],
        "users.yaml": [("User", _user(relay))],
    }
    return {name: _text(documents) for name, documents in files.items()}


def write_documents(folder: Path, relay: str, locations: Mapping[str, str], *, offline: bool) -> None:
    """Write the documents of a relay into a folder, replacing those that exist.

    Args:
        folder: folder of the documents.
        relay: name of the relay.
        locations: location of each relay, by name.
        offline: whether the relay that never responds is a peer.
    """
    folder.mkdir(exist_ok=True)
    for name, text in documents_of(relay, locations, offline=offline).items():
        (folder / name).write_text(text, encoding="utf-8")


def _text(documents: list[Document]) -> str:
    import yaml

    trees = [{"apiVersion": API_VERSION, "kind": kind, "spec": spec} for kind, spec in documents]
    return str(yaml.safe_dump_all(trees, sort_keys=False, default_flow_style=None, width=120))


def _entity(relay: str, table: str) -> dict[str, Any]:
    columns = columns_of(relay, table)
    return {"name": table, "information": [{"name": name, "arrow_dtype": dtype} for name, dtype in columns.items()]}


# --- The relay's own data ---


def _local_data(relay: str) -> dict[str, Any]:
    return {
        "name": _DATA,
        "connection": {
            "kind": "files",
            "tables": {table: {"location": f"../data/{table}.parquet"} for table in TABLES},
        },
        "data_sources": [_data_source(relay, table) for table in TABLES],
    }


def _data_source(relay: str, table: str) -> dict[str, Any]:
    words = words_of(relay) if table == "lineitem" else RelayWords({}, hidden=_HIDDEN[table])
    letter = _LETTERS[table]
    shown = [f"{letter}{column}" for column in TABLES[table] if column not in words.hidden]
    return {
        "name": table,
        "source_sql": _with(table, _FROM_FRACTIONS, words.more) if words.more else table,
        "fields": [{"name": name} for name in (*(f"{letter}{column}" for column in TABLES[table]), *words.more)],
        "default_permission": {"allowed_columns": [*shown, *words.more], "allowed_rows": _ROWS[table]},
    }


def _with(table: str, expressions: Mapping[str, str], names: Iterable[str]) -> str:
    """Return a SELECT of all columns of a table, and of additional columns computed from them."""
    more = ", ".join(f"{expressions[name]} AS {name}" for name in names)
    return f"SELECT *, {more} FROM {table}"  # noqa: S608 - made of constants


def _has_more(relay: str) -> bool:
    return relay == "na_us"


def _more_columns() -> dict[str, str]:
    """Return the columns of the CSV of na_us: in its own vocabulary, but without orders."""
    words = words_of("na_us")
    columns = columns_of("na_us", "lineitem")
    return {name: dtype for name, dtype in columns.items() if name != "orderkey" and name not in words.more}


def _more() -> dict[str, Any]:
    words = words_of("na_us")
    columns = _more_columns()
    fields = [*columns, *words.more]
    shown = [name for name in fields if name not in words.hidden]
    return {
        "name": _MORE,
        "connection": {
            "kind": "files",
            "tables": {"lines": {"location": f"../data/{MORE_LINES}", "columns": columns}},
        },
        "data_sources": [
            {
                "name": "lines",
                "source_sql": _with("lines", _FROM_PERCENT, words.more),
                "fields": [{"name": name} for name in fields],
                "default_permission": {"allowed_columns": shown, "allowed_rows": "returnflag = 'N'"},
            }
        ],
    }


def _local_mapping(relay: str, table: str) -> dict[str, Any]:
    words = words_of(relay) if table == "lineitem" else RelayWords({})
    fields = [
        _named("field", f"{_LETTERS[table]}{column}", words.word(column).name, words.word(column).made)
        for column in TABLES[table]
    ]
    fields += [_named("field", name, name, None) for name in words.more]
    mappings = [{"data": _DATA, "source": table, "fields": fields}]
    if table == "lineitem" and _has_more(relay):
        more = [_named("field", name, name, None) for name in (*_more_columns(), *words.more)]
        mappings.append({"data": _MORE, "source": "lines", "fields": more})
    return {"entity": table, "mappings": mappings}


# --- Peers and users ---


def _peer(peer: str, locations: Mapping[str, str]) -> dict[str, Any]:
    document = {"name": peer, "flight_endpoint": locations[peer]}
    return document if peer == OFFLINE else {**document, "certificates": [f"../../keys/{peer}.pem"]}


def _remote(relay: str, peer: str, table: str) -> dict[str, Any]:
    mapping: dict[str, Any] = {"entity": table, "relay": peer, "remote_entity": table}
    if table != "lineitem":
        return {**mapping, "information": [_named("remote", name, name, None) for name in TABLES[table]]}
    own_words, peer_words = words_of(relay), words_of(peer)
    if missing_names := [name for name in own_words.more if name not in peer_words.more]:
        mapping["sql"] = _with(table, _FROM_PEER, missing_names)
    translated = [_translated(own_words.word(column), peer_words.word(column)) for column in TABLES[table]]
    return {**mapping, "information": [*translated, *(_named("remote", name, name, None) for name in own_words.more)]}


def _translated(own_word: Word, peer_word: Word) -> dict[str, Any]:
    """Return a relay's column, computed from that of a peer."""
    transformation = None
    if own_word != peer_word:
        back, forth = peer_word.back or "{v}", own_word.made or "{v}"
        transformation = back if forth == "{v}" else forth.replace("{v}", "{v}" if back == "{v}" else f"({back})")
    return _named("remote", peer_word.name, own_word.name, transformation)


def _named(key: str, name: str, information: str, transformation: str | None) -> dict[str, Any]:
    field = {"information": information, key: name}
    return field if transformation is None else {**field, "transformation": transformation}


def _user(relay: str) -> dict[str, Any]:
    sources = [(_DATA, "lineitem"), *([(_MORE, "lines")] if _has_more(relay) else [])]
    return {
        "name": ALL_ACCESS,
        "certificates": [f"../../keys/{ALL_ACCESS}.pem"],
        "permissions": [
            {"data": data, "source": source, "allowed_columns": "*", "allowed_rows": "true"} for data, source in sources
        ],
    }
