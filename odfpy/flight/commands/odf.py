"""Requests to `odf serve`: a dataset as its log, its current state, as at a system time or as of an event time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from odfpy.errors import UsageError
from odfpy.flight.commands.protocol import Commands
from odfpy.flight.commands.sql import FlightSql
from odfpy.flight.pool import Headers
from odfpy.flight.request import Request


@dataclass(frozen=True)
class OdfCommands(FlightSql):
    """Flight SQL of `odf serve`: selects the rows that a table contains, of a dataset's log or state.

    Attributes:
        current: whether to read the current state, instead of the log.
        as_at: system time, block, tag or branch at which the dataset is read.
        as_of: event time as of which the dataset is read.
    """

    stream_column: ClassVar[str | None] = "offset"

    current: bool = False
    as_at: str | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        if self.current and (self.as_at is not None or self.as_of is not None):
            raise UsageError(
                "The current state cannot be combined with AS AT or AS OF",
                hint="`as_of` alone gives the state at an event time; `as_at` the log as it was.",
            )

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Commands:
        """Implement `Commands`: the options `odf.state`, `odf.as-at` and `odf.as-of`."""
        state = options.get("odf.state", "log")
        if state not in {"log", "current"}:
            raise UsageError(f"There is no state {state!r} of a dataset", hint="odf.state is log or current.")
        return cls(current=state == "current", as_at=options.get("odf.as-at"), as_of=options.get("odf.as-of"))

    def relation(self, request: Request) -> str:
        """Implement `FlightSql`."""
        if request.table is None:
            return super().relation(request)
        name = "/".join(part for part in (request.schema, request.table) if part is not None)
        moments = [self.constant(moment) for moment in (self.as_at, self.as_of) if moment is not None]
        functions = {
            (False, False): "odf_current" if self.current else None,
            (True, False): "odf_as_at",
            (False, True): "odf_as_of",
            (True, True): "odf_as_at_of",
        }
        function = functions[self.as_at is not None, self.as_of is not None]
        return self.name(name) if function is None else f"{function}({', '.join([self.constant(name), *moments])})"

    def headers(self) -> Headers:
        """Implement `Commands`: select DataFusion's SQL, whatever the server's default is."""
        return ((b"odf-dialect", b"datafusion"),)
