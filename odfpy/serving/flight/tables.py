"""The interface through which tools list tables, and datasets as its implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.serving.callers.resolver import (
        CallerResolver,
    )  # a relay has no callers with tokens, so it does not need this


class Tables(Protocol):
    """The tables that a caller may see."""

    def names(self) -> Sequence[str]:
        """Return their names, sorted."""

    def schema(self, name: str) -> pa.Schema | None:
        """Return the columns of a table, None if it has none yet, or is damaged.

        Args:
            name: name of the table.
        """

    def primary_key(self, name: str) -> Sequence[str]:
        """Return the columns of the primary key, none if there is no such key.

        Args:
            name: name of the table.
        """


class DatasetTables:
    """Datasets as tables, each under its full name."""

    def __init__(self, resolver: CallerResolver) -> None:
        """
        Args:
            resolver: datasets that the caller may see.
        """
        self._resolver = resolver

    def names(self) -> Sequence[str]:
        """Implement `Tables`."""
        return self._resolver.names()

    def schema(self, name: str) -> pa.Schema | None:
        """Implement `Tables`."""
        from odfpy.data.slices.slice import slice_schema

        try:
            state = self._resolver.find(name).state
            if state.schema is None:
                return None
            return slice_schema(self._resolver.schema_file(state.schema), vocab=state.vocab)
        except OdfError:
            return None

    def primary_key(self, name: str) -> Sequence[str]:
        """Implement `Tables`; it is the key of the projected dataset: in the log, a key may occur repeatedly."""
        return self._resolver.find(name).state.primary_key or ()
