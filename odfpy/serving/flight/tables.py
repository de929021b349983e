"""Tables as tools list them, whatever they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from odfpy.errors import OdfError

if TYPE_CHECKING:
    from odfpy.serving.callers.resolver import (
        CallerResolver,
    )  # a relay has no callers with tokens, and needs none of it


class Tables(Protocol):
    """The tables that somebody may see."""

    def names(self) -> Sequence[str]:
        """Return their names, sorted."""

    def schema(self, name: str) -> pa.Schema | None:
        """The columns of one of them, None where it has none yet, or is damaged.

        Args:
            name: of the table.
        """

    def primary_key(self, name: str) -> Sequence[str]:
        """The columns of its primary key, none where it has no such key.

        Args:
            name: of the table.
        """


class DatasetTables:
    """Datasets as tables, each under its whole name."""

    def __init__(self, resolver: CallerResolver) -> None:
        """
        Args:
            resolver: the datasets that whoever asks may see.
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
        """Implement `Tables`; it is that of what a dataset stands for: in its log, a key may come more than once."""
        return self._resolver.find(name).state.primary_key or ()
