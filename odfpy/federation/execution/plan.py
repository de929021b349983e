"""Plans: a query with all that follows from it before anybody is asked, and the id that stands for exactly that.

The id of a query is a hash of its plan. Relays sign that id with the rows that they give, though they know nothing of
the query but the fragments that reach them. So whoever has the plan can show later what the rows are the answer to.
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
    """A query before it is asked.

    Attributes:
        sql: over the entities.
        entities: schemas of the entities that it may be about, by name.
        fragments: what travels, by name.
        rest: SQL over the fragments that gives the answer.
        nonce: makes the id a new one each time, and says nothing of the query.
    """

    sql: str
    entities: Mapping[str, pa.Schema]
    fragments: Mapping[str, Fragment]
    rest: str
    nonce: str

    @property
    def query(self) -> str:
        """The id: SHA3-256 of the plan, 64 hexadecimal digits."""
        return hashlib.sha3_256(plain_json(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The plan for `json.dumps`.

        Raises:
            InvalidValue: an entity has a column of a type without a name.
        """
        return {
            "sql": self.sql,
            "entities": {
                name: [[field.name, dtype_name(field.type)] for field in schema]
                for name, schema in self.entities.items()
            },
            "fragments": {name: one.to_json() for name, one in self.fragments.items()},
            "rest": self.rest,
            "nonce": self.nonce,
        }

    @classmethod
    def parse(cls, tree: Any) -> WebPlan:
        """The plan that somebody kept. Whether all follows from the SQL is for `planned` to say.

        Args:
            tree: what `json.loads` gave.

        Raises:
            InvalidValue: it is invalid.
        """
        try:
            entities = {
                str(name): pa.schema([(column, parse_dtype(dtype)) for column, dtype in columns])
                for name, columns in tree["entities"].items()
            }
            fragments = {str(name): Fragment.parse(one) for name, one in tree["fragments"].items()}
            sql, rest, nonce = tree["sql"], tree["rest"], tree["nonce"]
            if tree.keys() != {"sql", "entities", "fragments", "rest", "nonce"}:
                raise InvalidValue("A plan of a query has other keys")
            if not all(isinstance(one, str) for one in (sql, rest, nonce)):
                raise InvalidValue("A plan of a query has texts")
            return cls(sql, entities, fragments, rest, nonce)
        except (KeyError, TypeError, ValueError, AttributeError, InvalidFragment) as error:
            raise InvalidValue("Not a plan of a query") from error

    def columns(self) -> list[str]:
        """Names of the columns of the answer, as far as the query says them."""
        from sqlglot import parse_one

        rest: Any = parse_one(self.rest, dialect=QUERIES["datafusion"].sqlglot)
        return list(rest.named_selects)


@dataclass(frozen=True, slots=True)
class StartedQuery:
    """A query whose parts are known.

    Attributes:
        plan: the query.
        query: its id.
        answers: of the relays, by fragment.
    """

    plan: WebPlan
    query: str
    answers: Mapping[str, Answer]

    @property
    def sql(self) -> str:
        """The query as it was asked."""
        return self.plan.sql

    @property
    def fragments(self) -> Mapping[str, Fragment]:
        """Its fragments, by name."""
        return self.plan.fragments

    @property
    def rest(self) -> str:
        """SQL over the fragments that gives the answer."""
        return self.plan.rest

    @property
    def missing(self) -> tuple[MissingRelay, ...]:
        """The relays that could not be asked."""
        return tuple(dict.fromkeys(one for answer in self.answers.values() for one in answer.missing))

    @property
    def relays(self) -> tuple[str, ...]:
        """The relays of all parts."""
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
        sql: over the entities.
        entities: all that there are, by name.
        nonce: of a plan that is made again; a new one by default.
        dialect: of the query, and of the rest: `datafusion` or `spark`.
        prefix: names of fragments begin with it.

    Raises:
        InvalidQuery: the query is invalid.
    """
    parts = split(sql, entities, dialect, prefix)
    fragments = {name: _with_rows(fragment) for name, fragment in parts.fragments.items()}
    folded = sql.lower()
    named = {name: schema for name, schema in entities.items() if name.lower() in folded}
    return WebPlan(sql, named, fragments, parts.rest, secrets.token_hex(_NONCE_BYTES) if nonce is None else nonce)


def plain_json(tree: Any) -> str:
    """The one JSON text of a tree, for hashes.

    Args:
        tree: of dictionaries, lists, texts and numbers.
    """
    return json.dumps(tree, sort_keys=True, separators=(",", ":"))


def _with_rows(fragment: Fragment) -> Fragment:
    """The fragment with something to count, where only the number of its rows matters: files need a column."""
    if fragment.outputs:
        return fragment
    return replace(fragment, outputs=(Output("row", Constant(True, pa.bool_())),))
