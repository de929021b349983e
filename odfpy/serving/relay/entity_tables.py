"""Entities as tables of Flight SQL, and the parameters of queries over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from odfpy.federation.execution.explain import without_explain
from odfpy.query.dialects import dialect_named, parameter_places, with_parameters
from odfpy.serving.flight.parameters import parameter_types
from odfpy.serving.flight.tickets import QueryTicket


class EntityTables:
    """Entities as tables; they have no primary keys."""

    def __init__(self, entities: Mapping[str, pa.Schema]) -> None:
        """
        Args:
            entities: schemas by name.
        """
        self._entities = entities

    def names(self) -> Sequence[str]:
        """Implement `Tables`."""
        return sorted(self._entities)

    def schema(self, name: str) -> pa.Schema | None:
        """Implement `Tables`."""
        return self._entities.get(name)

    def primary_key(self, name: str) -> Sequence[str]:
        """Implement `Tables`: relays ignore keys."""
        del name
        return ()


def bound(question: QueryTicket, *, is_complete: bool = True) -> str:
    """Substitute parameters for `?` in a query.

    Args:
        question: the query, and its values.
        is_complete: whether all parameters must have a value; otherwise missing ones are null.

    Raises:
        UsageError: there are too few values, or too many.
    """
    dialect = dialect_named(question.dialect)
    text, _ = without_explain(question.text)
    absent = 0 if is_complete else max(0, len(parameter_places(text, dialect)) - len(question.parameters))
    explain = question.text[: len(question.text) - len(text)]
    return explain + with_parameters(text, dialect, (*question.parameters, *[None] * absent))


def parameters_of(question: QueryTicket, entities: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the parameters of a query, with the types of the compared operands, else text.

    Args:
        question: the query.
        entities: schemas by name.
    """
    from sqlglot import exp

    dialect = dialect_named(question.dialect)
    text, _ = without_explain(question.text)
    number = len(parameter_places(text, dialect))
    tree = dialect.tree(text) if number else None
    named = {table.name for table in tree.find_all(exp.Table)} if tree is not None else set()
    columns = {field.name: field.type for name, schema in entities.items() if name in named for field in schema}
    return parameter_types(text, dialect, number, columns)
