"""Random webs: relays with their own models, links, sources and grants; and the visible cells, row by row.

All relays have the same information in different vocabularies: numbers are shifted, truth values negated. So all routes
between two relays agree, whichever of them a question takes. A source may store its information in any form. Nothing
here uses the code under test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from support.federation.worlds import (
    ASKER,
    ATTRIBUTES,
    BOOL,
    DOUBLE,
    EXACT,
    INT,
    NAMES,
    SMALL,
    STEPS,
    TYPES,
    Row,
    Rule,
    Step,
    rules,
    value_of,
)

PEOPLE = ("ann", "bob", "eve")
"""Names of users. Certificates are by these."""

RELAYS = ("r0", "r1", "r2", "r3", "r4")
ENTITIES = {"Item": "key", "other": "ref"}
"""Entities of the queried relay, and their keys."""

Pairs = tuple[tuple[tuple[str, ...] | None, Rule | None], ...]
"""Columns and rows that may be read together; None for all."""


@dataclass(frozen=True)
class Stored:
    """A data source.

    Attributes:
        schema: schema of its fields.
        mapping: for some columns of the entity, the field and its transformation.
        rows: rows of the source.
        default: permission of requesters without a grant.
        grants: grants of some people and relays.
        engine: engine of the source.
    """

    schema: pa.Schema
    mapping: Mapping[int, tuple[str, Step]]
    rows: tuple[Row, ...]
    default: Pairs
    grants: Mapping[str, Pairs]
    engine: str

    def pairs(self, who: str) -> Pairs:
        return self.grants.get(who) or self.default

    def shown(self, people: Mapping[str, Mapping[str, str]]) -> list[Row]:
        """Return the cells visible to all of several people; hidden cells are None, rows with none visible are omitted.

        Args:
            people: attributes by name.
        """
        found = []
        for row in self.rows:
            seen = [self._seen(row, who, attributes) for who, attributes in people.items()]
            visible = set.intersection(*seen)
            if visible:
                found.append({name: value if name in visible else None for name, value in row.items()})
        return found

    def _seen(self, row: Row, who: str, attributes: Mapping[str, str]) -> set[str]:
        asked = {**row, ASKER: attributes}
        parts = [columns for columns, rule in self.pairs(who) if rule is None or rule.holds(asked) is True]
        return {name for columns in parts for name in (row if columns is None else columns)}


@dataclass(frozen=True)
class Node:
    """A relay.

    Attributes:
        words: for each entity, its local name and the names of its columns.
        turned: for each entity, the shift of each column relative to other relays.
        links: the relays that it queries about all entities.
        stored: sources by name, each with the entity that it has rows of.
        known: the people and relays that it knows by name, with their attributes.
    """

    words: Mapping[str, tuple[str, tuple[str, ...]]]
    turned: Mapping[str, tuple[int, ...]]
    links: Mapping[str, frozenset[str]]
    stored: Mapping[str, tuple[str, Stored]]
    known: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True)
class RandomWeb:
    """A web of relays, the first of which is queried.

    Attributes:
        types: column types of each entity.
        nodes: the relays.
        fields: attributes in certificates of people and relays.
        down: unreachable relays.
        asker: the requester.
        signs: whether the requester signs a token.
    """

    types: Mapping[str, tuple[pa.DataType, ...]]
    nodes: Mapping[str, Node]
    fields: Mapping[str, Mapping[str, str]]
    down: frozenset[str]
    asker: str
    signs: bool

    @property
    def entities(self) -> dict[str, pa.Schema]:
        """The entities of the queried relay."""
        return {name: self.schema("r0", name) for name in ENTITIES}

    def schema(self, node: str, entity: str) -> pa.Schema:
        _, names = self.nodes[node].words[entity]
        return pa.schema(list(zip(names, self.types[entity], strict=True)))

    def reached(self) -> list[str]:
        """Return the relays that a question gets to."""
        found, left = ["r0"], ["r0"]
        while left:
            for peer in sorted(self.nodes[left.pop()].links):
                if peer not in (*found, *self.down):
                    found.append(peer)
                    left.append(peer)
        return found

    def missing(self) -> set[str]:
        """Return the relays that a question does not get to, and should."""
        return {peer for name in self.reached() for peer in self.nodes[name].links if peer in self.down}

    def people(self, node: str) -> dict[str, dict[str, str]]:
        """Return the identities that must be permitted to see a relay's rows: the requester, a vouching first relay."""
        who = (self.asker,) if self.signs or node == "r0" else ("r0", self.asker)
        known = self.nodes[node].known
        return {one: {**self.fields[one], **known.get(one, {})} for one in who}

    def visible(self, entity: str) -> pa.Table:
        """Return the visible rows of an entity, in the vocabulary of the first relay."""
        schema = self.schema("r0", entity)
        rows = []
        for name in self.reached():
            for of, stored in self.nodes[name].stored.values():
                if of == entity:
                    rows += [self._told(name, entity, stored, row) for row in stored.shown(self.people(name))]
        return pa.Table.from_pylist(rows, schema=schema)

    def _told(self, node: str, entity: str, stored: Stored, row: Row) -> Row:
        """Return a row in the vocabulary of the first relay."""
        here, there = self.nodes["r0"].turned[entity], self.nodes[node].turned[entity]
        names = self.schema("r0", entity).names
        found = {}
        for at, dtype in enumerate(self.types[entity]):
            value = None
            if at in stored.mapping:
                field, step = stored.mapping[at]
                value = turned(step.apply(row[field]), dtype, here[at] - there[at])
            found[names[at]] = value
        return found


# --- From the words of one relay to those of another ------------------------------------------------------------------


def turned(value: Any, dtype: pa.DataType, by: int) -> Any:
    """Return a transformed value."""
    if value is None or not by:
        return value
    if dtype in (INT, SMALL):
        return value + by
    if dtype == EXACT:
        return value + Decimal(by) / 2
    if dtype == DOUBLE:
        return value * 2.0**by
    return not value if dtype == BOOL and by % 2 else value


def template(dtype: pa.DataType, by: int) -> str | None:
    """Return the equivalent SQL transformation; None for none."""
    if not by:
        return None
    if dtype in (INT, SMALL):
        return f"{{v}} + {by}" if by > 0 else f"{{v}} - {-by}"
    if dtype == EXACT:
        return f"{{v}} {'+' if by > 0 else '-'} {abs(by) / 2}"
    if dtype == DOUBLE:
        return f"{{v}} * {2.0**by}" if by % 2 else f"{{v}} / {2.0**-by}"
    return "NOT {v}" if dtype == BOOL and by % 2 else None


# --- Drawing ----------------------------------------------------------------------------------------------------------


@st.composite
def _pairs(draw: st.DrawFn, schema: pa.Schema, least: int) -> Pairs:
    columns = st.none() | st.lists(st.sampled_from(schema.names), min_size=1, unique=True).map(tuple)
    rows = st.none() | rules(schema) | rules(schema)
    return tuple(draw(st.lists(st.tuples(columns, rows), min_size=least, max_size=3)))


@st.composite
def stored_rows(draw: st.DrawFn, types: tuple[pa.DataType, ...]) -> Stored:
    """Return a data source of an entity."""
    names = draw(st.permutations(NAMES))
    mapping: dict[int, tuple[str, Step]] = {}
    fields = []
    for at, dtype in enumerate(types):
        if draw(st.integers(0, 5)) or not fields:
            step = draw(st.sampled_from(STEPS[dtype]))
            mapping[at] = names[at], step
            fields.append(pa.field(names[at], step.stored))
    fields.append(pa.field(names[len(types)], draw(st.sampled_from(TYPES))))
    schema = pa.schema(fields)
    rows = draw(
        st.lists(st.fixed_dictionaries({one.name: value_of(one.type) for one in fields}), min_size=1, max_size=6)
    )
    granted = {who for who in ("ann", "bob", "r0", "r1") if draw(st.booleans())}
    default = draw(_pairs(schema, 1))[: draw(st.integers(0, 3))][:1]  # a document has one, or none
    grants = {who: draw(_pairs(schema, 1)) for who in sorted(granted)}
    return Stored(schema, mapping, tuple(rows), default, grants, draw(st.sampled_from(("duckdb", "datafusion"))))


@st.composite
def _node(draw: st.DrawFn, name: str, names: tuple[str, ...], types: Mapping[str, tuple[pa.DataType, ...]]) -> Node:
    words, by = {}, {}
    for entity, key in ENTITIES.items():
        columns = draw(st.permutations([one for one in NAMES if one != key]))[: len(types[entity])]
        if name == "r0":
            columns = [key, *columns[1:]]
        words[entity] = entity if name == "r0" else f"{entity}_{name}", tuple(columns)
        by[entity] = tuple(draw(st.integers(-3, 3)) for _ in types[entity])
    stored = {}
    for at in range(draw(st.sampled_from((1, 1, 2, 0)))):
        entity = draw(st.sampled_from(tuple(ENTITIES)))
        stored[f"s{at}"] = entity, draw(stored_rows(types[entity]))
    links = frozenset(draw(st.sets(st.sampled_from(names))))
    granted = {who for _, one in stored.values() for who in one.grants}
    known = {who: draw(st.sampled_from((ATTRIBUTES, {}, {"region": "a"}))) for who in sorted(granted)}
    return Node(words, by, links, stored, known)


@st.composite
def webs(draw: st.DrawFn) -> RandomWeb:
    """Return a web of up to five relays, with any links."""
    names = RELAYS[: draw(st.sampled_from((3, 4, 2, 5, 1)))]
    types = {entity: (INT, *draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))) for entity in ENTITIES}
    nodes = {name: draw(_node(name, names, types)) for name in names}
    fields = {who: {"subject.CN": who} for who in (*PEOPLE, *RELAYS)}
    down = frozenset(draw(st.sets(st.sampled_from(names), max_size=1))) - {"r0"}
    found = RandomWeb(types, nodes, fields, down, draw(st.sampled_from(("ann", "ann", "eve"))), draw(st.booleans()))
    return replace(found, down=down if draw(st.booleans()) else frozenset())


# --- As documents -----------------------------------------------------------------------------------------------------


def _permission(columns: tuple[str, ...] | None, rule: Rule | None) -> dict[str, Any]:
    return {
        "allowed_columns": "*" if columns is None else list(columns),
        "allowed_rows": "true" if rule is None else rule.sql,
    }


def documents(web: RandomWeb, name: str, dtype_name: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the documents of a relay: kinds and specs.

    Args:
        web: the web.
        name: name of the relay.
        dtype_name: returns the name of a type in documents.
    """
    node = web.nodes[name]
    for entity, (word, _) in node.words.items():
        columns = [{"name": one.name, "arrow_dtype": dtype_name(one.type)} for one in web.schema(name, entity)]
        yield "Entity", {"name": word, "information": columns}
        mappings = [
            {
                "data": source,
                "source": "rows",
                "fields": [
                    {"field": field, "information": node.words[entity][1][at], "transformation": step.template}
                    for at, (field, step) in stored.mapping.items()
                ],
            }
            for source, (of, stored) in node.stored.items()
            if of == entity
        ]
        if mappings:
            yield "LocalMapping", {"entity": word, "mappings": mappings}
        for peer in sorted(node.links):
            theirs = web.nodes[peer]
            by = zip(node.turned[entity], theirs.turned[entity], web.types[entity], strict=True)
            texts = [template(dtype, here - there) for here, there, dtype in by]
            information = [
                {"information": mine, "remote": other, **({} if text is None else {"transformation": text})}
                for mine, other, text in zip(node.words[entity][1], theirs.words[entity][1], texts, strict=True)
            ]
            remote = {"entity": word, "relay": peer, "remote_entity": theirs.words[entity][0]}
            yield "RemoteMapping", {**remote, "information": information}
    for source, (_, stored) in node.stored.items():
        data = {"name": "rows", "source_sql": "raw", "fields": [{"name": one} for one in stored.schema.names]}
        default = {"default_permission": _permission(*stored.default[0])} if stored.default else {}
        connection = {"kind": "duckdb", "path": "/nowhere"}
        yield "LocalData", {"name": source, "connection": connection, "data_sources": [{**data, **default}]}
    for who in {*node.known, *node.links}:
        granted = [
            {"data": source, "source": "rows", **_permission(*pair)}
            for source, (_, stored) in node.stored.items()
            for pair in stored.grants.get(who, ())
        ]
        spec = {"name": who, "attributes": dict(node.known.get(who, {})), "permissions": granted}
        if who in RELAYS:
            yield "PeerRelay", {**spec, "flight_endpoint": f"grpc+tls://{who}:1"}
        else:
            yield "User", spec
