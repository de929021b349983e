"""Plans: a query with everything that is derived from it before any relay is queried, and an id for exactly that.

The id of a query is a hash of its plan. Relays sign that id with the rows that they return, although they know nothing
of the query but the fragments they receive. So the plan later proves which query the rows are the answer to.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from odfpy.errors import InvalidValue
from odfpy.federation.model.arrow_types import dtype_name, parse_dtype
from odfpy.federation.relay.question import Answer, MissingRelay
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Constant
from odfpy.federation.sql.flavors import QUERIES
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.split import split

_NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class WebPlan:
    """A query before it is sent to relays.

    Attributes:
        sql: SQL over the entities.
        entities: schemas of the entities that it may use, by name.
        fragments: the fragments that are sent to relays, by name.
        rest: SQL over the fragments that computes the answer.
        nonce: makes each id unique, and reveals nothing about the query.
    """

    sql: str
    entities: Mapping[str, pa.Schema]
    fragments: Mapping[str, Fragment]
    rest: str
    nonce: str

    @property
    def query(self) -> str:
        """Return the query's id: SHA3-256 of the plan, 64 hexadecimal digits."""
        return hashlib.sha3_256(plain_json(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the plan for `json.dumps`.

        Raises:
            InvalidValue: an entity has a column whose type has no name.
        """
        return {
            "sql": self.sql,
            "entities": {
                name: [[field.name, dtype_name(field.type)] for field in schema]
                for name, schema in self.entities.items()
            },
            "fragments": {name: fragment.to_json() for name, fragment in self.fragments.items()},
            "rest": self.rest,
            "nonce": self.nonce,
        }

    @classmethod
    def parse(cls, tree: Any) -> WebPlan:
        """Parse a stored plan. Whether its fragments follow from its SQL is for `planned` to check.

        Args:
            tree: result of `json.loads`.

        Raises:
            InvalidValue: it is invalid.
        """
        try:
            entities = {
                str(name): pa.schema([(column, parse_dtype(dtype)) for column, dtype in columns])
                for name, columns in tree["entities"].items()
            }
            fragments = {str(name): Fragment.parse(item) for name, item in tree["fragments"].items()}
            sql, rest, nonce = tree["sql"], tree["rest"], tree["nonce"]
            if tree.keys() != {"sql", "entities", "fragments", "rest", "nonce"}:
                raise InvalidValue("A plan of a query has other keys")
            if not all(isinstance(item, str) for item in (sql, rest, nonce)):
                raise InvalidValue("A plan of a query has texts")
            return cls(sql, entities, fragments, rest, nonce)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidFragment) as error:
            raise InvalidValue("Not a plan of a query") from error

    def columns(self) -> list[str]:
        """Return the names of the answer's columns, as far as they are determined by the query."""
        from sqlglot import parse_one

        rest: Any = parse_one(self.rest, dialect=QUERIES["datafusion"].sqlglot)
        return list(rest.named_selects)


@dataclass(frozen=True, slots=True)
class StartedQuery:
    """A query after planning: its parts are known.

    Attributes:
        plan: the query's plan.
        query: id of the query.
        answers: answers of the relays, by fragment.
    """

    plan: WebPlan
    query: str
    answers: Mapping[str, Answer]

    @property
    def sql(self) -> str:
        """Return the query as it was written."""
        return self.plan.sql

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """Return its fragments, by name."""
        return self.plan.fragments

    @property
    def rest(self) -> str:
        """Return SQL over the fragments that computes the answer."""
        return self.plan.rest

    @property
    def missing(self) -> tuple[MissingRelay, ...]:
        """Return the relays that could not be queried."""
        return tuple(dict.fromkeys(relay for answer in self.answers.values() for relay in answer.missing))

    @property
    def relays(self) -> tuple[str, ...]:
        """Return the relays of all parts."""
        return tuple(part.relay for answer in self.answers.values() for part in answer.parts)


def planned(
    sql: str,
    entities: Mapping[str, pa.Schema],
    nonce: str | None = None,
    *,
    dialect: str = "datafusion",
    prefix: str = "f",
) -> WebPlan:
    """Split a query.

    Args:
        sql: SQL over the entities.
        entities: all available entities, by name.
        nonce: nonce of a plan that is to be reproduced; a new one by default.
        dialect: dialect of the query, and of the rest: `datafusion` or `spark`.
        prefix: prefix of the names of fragments.

    Raises:
        InvalidQuery: the query is invalid.
    """
    parts = split(sql, entities, dialect, prefix)
    fragments = {name: _with_rows(fragment) for name, fragment in parts.fragments.items()}
    folded = sql.lower()
    named = {name: schema for name, schema in entities.items() if name.lower() in folded}
    return WebPlan(sql, named, fragments, parts.rest, secrets.token_hex(_NONCE_BYTES) if nonce is None else nonce)


def plain_json(tree: Any) -> str:
    """Return the canonical JSON text of a tree, for hashing.

    Args:
        tree: tree of dictionaries, lists, texts and numbers.
    """
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def _with_rows(fragment: Fragment) -> Fragment:
    """Add a column to a fragment of which only the row count matters: files need at least one column."""
    if fragment.outputs:
        return fragment
    return replace(fragment, outputs=(Output("row", Constant(True, pa.bool_())),))
