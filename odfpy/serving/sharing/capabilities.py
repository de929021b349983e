"""The header `delta-sharing-capabilities` (Delta Sharing protocol): what a client can read, and what it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.serving.sharing.actions import ResponseFormat
from odfpy.serving.sharing.errors import SharingError

HEADER: Final = "delta-sharing-capabilities"
_OLD: Final = frozenset({ResponseFormat.PARQUET})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The abilities that a client has told of.

    Attributes:
        formats: those that it can read; parquet where it says nothing.
        reader_features: of Delta tables that it knows, in small letters.
        wants_end: whether it wants to be told the end of an answer.
        wants_async: whether it would come back for an answer.
    """

    formats: frozenset[ResponseFormat] = _OLD
    reader_features: frozenset[str] = frozenset()
    wants_end: bool = False
    wants_async: bool = False

    @classmethod
    def parse(cls, text: str | None) -> Capabilities:
        """Read the header; what is not known in it is passed over, as newer clients expect.

        Raises:
            SharingError: 400, it can read none of the formats that there are.
        """
        given: dict[str, frozenset[str]] = {}
        for part in (text or "").lower().split(";"):
            name, _, values = part.partition("=")
            given[name.strip()] = frozenset(value.strip() for value in values.split(",") if value.strip())
        wanted = given.get("responseformat", frozenset())
        formats = frozenset(one for one in ResponseFormat if one.value in wanted)
        if wanted and not formats:
            raise SharingError(400, f"responseformat is parquet or delta, and not {', '.join(sorted(wanted))[:100]}")
        return cls(
            formats or _OLD,
            given.get("readerfeatures", frozenset()),
            "true" in given.get("includeendstreamaction", ()),
            "true" in given.get("asyncquery", ()),
        )

    def form(self, schema: str) -> ResponseFormat:
        """The format of an answer: parquet where the client reads it and the table needs no more.

        Args:
            schema: JSON of the columns of the table.

        Raises:
            SharingError: 400, the client cannot read the table.
        """
        needs_feature = '"timestamp_ntz"' in schema
        if ResponseFormat.PARQUET in self.formats and not (needs_feature and ResponseFormat.DELTA in self.formats):
            return ResponseFormat.PARQUET
        if needs_feature and "timestampntz" not in self.reader_features:
            raise SharingError(
                400, "The table has times without a zone: the client needs the reader feature timestampntz"
            )
        return ResponseFormat.DELTA

    def answer(self, form: ResponseFormat) -> str:
        """The header of an answer in some format."""
        parts = [f"responseformat={form.value}"]
        if self.wants_end:
            parts.append("includeendstreamaction=true")
        return ";".join(parts)
