"""Queries and their options, the input of the query service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from odfpy.data.multihash import Multihash
from odfpy.data.scalars import count_given
from odfpy.data.sql_text import OWN, TextLimits
from odfpy.dataset.identity import DatasetId
from odfpy.errors import UsageError

_MAX_SECONDS = 10**9


@dataclass(frozen=True, slots=True)
class Query:
    """A query: the value that all callers pass to the query service.

    Attributes:
        text: SQL, one statement; every dataset is a table under its name or id. `docs/query.md` lists all forms.
        dialect: `spark` or `datafusion`: the SQL dialect, and the engine of queries that need one.
        pins: blocks at which datasets are read; other datasets are read at their heads.
        skip: number of rows to skip.
        limit: maximum number of rows.
        max_bytes: maximum bytes of Arrow data; a larger answer is an error.
        timeout: seconds until the query is stopped.
        parameters: values for `?`, in order.
        names: additional names of datasets, besides those of the workspace.
        blocks: blocks of names that contain a block reference (`rates@v1`); other such names are looked up.
        text_limits: limits on the size of the text.

    Raises:
        UsageError: an option is invalid.
    """

    text: str
    dialect: str = "spark"
    pins: Mapping[DatasetId, Multihash] = field(default_factory=dict)
    skip: int = 0
    limit: int | None = None
    max_bytes: int | None = None
    timeout: float | None = None
    parameters: tuple[Any, ...] = ()
    names: Mapping[str, DatasetId] = field(default_factory=dict)
    blocks: Mapping[str, Multihash] = field(default_factory=dict)
    text_limits: TextLimits = OWN

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise UsageError(f"A query is a string, not a value of type {type(self.text).__name__}", hint="Write SQL.")
        object.__setattr__(self, "skip", count_given(self.skip, "skip"))
        if self.limit is not None:
            object.__setattr__(self, "limit", count_given(self.limit, "limit"))
        seconds = self.timeout
        if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds <= _MAX_SECONDS):
            raise UsageError(
                f"timeout must be more than 0 s and at most {_MAX_SECONDS} s, not {seconds!r}",
                hint="None for no limit.",
            )
