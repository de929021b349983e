"""Queries and their options, as the query service takes them."""

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
    """A query: the one value that goes from whoever asks to the query service.

    Attributes:
        text: SQL, one statement; every dataset is a table under its name or id. `docs/query.md` has all forms.
        dialect: `spark` or `datafusion`: which SQL, and which engine answers what is not answered without one.
        pins: the blocks as of which datasets are read; the others are read as they are now.
        skip: rows to leave out first.
        limit: rows at most.
        max_bytes: bytes of Arrow data at most; a larger answer is an error.
        timeout: seconds until it is stopped.
        parameters: values for `?`, in order.
        names: datasets under other names than those of the workspace.
        blocks: what names that say a block themselves (`rates@v1`) stand for; other such names are looked up.
        text_limits: how large the text may be.

    Raises:
        UsageError: an option makes no sense.
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
