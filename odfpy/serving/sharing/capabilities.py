"""The header `delta-sharing-capabilities` (Delta Sharing protocol): what a client supports, and what it gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.serving.sharing.actions import ResponseFormat
from odfpy.serving.sharing.errors import SharingError

HEADER: Final = "delta-sharing-capabilities"
_OLD: Final = frozenset({ResponseFormat.PARQUET})


@dataclass(frozen=True, slots=True)
class Capabilities:
    """The capabilities that a client has declared.

    Attributes:
        formats: supported formats; parquet by default.
        reader_features: supported reader features of Delta tables, in lower case.
        wants_end: whether it wants a last line that marks the end of a response.
        wants_async: whether it supports asynchronous queries.
    """

    formats: frozenset[ResponseFormat] = _OLD
    reader_features: frozenset[str] = frozenset()
    wants_end: bool = False
    wants_async: bool = False

    @classmethod
    def parse(cls, text: str | None) -> Capabilities:
        """Parse the header; unknown capabilities are ignored, as newer clients expect.

        Raises:
            SharingError: 400, the client supports none of the formats.
        """
        given: dict[str, frozenset[str]] = {}
        for part in (text or "").lower().split(";"):
            name, _, values = part.partition("=")
            given[name.strip()] = frozenset(value.strip() for value in values.split(",") if value.strip())
        wanted = given.get("responseformat", frozenset())
        formats = frozenset(response_format for response_format in ResponseFormat if response_format.value in wanted)
        if wanted and not formats:
            raise SharingError(400, f"responseformat is parquet or delta, and not {', '.join(sorted(wanted))[:100]}")
        return cls(
            formats or _OLD,
            given.get("readerfeatures", frozenset()),
            "true" in given.get("includeendstreamaction", ()),
            "true" in given.get("asyncquery", ()),
        )

    def form(self, schema: str) -> ResponseFormat:
        """Return the format of a response: parquet if the client supports it and the table needs no more.

        Args:
            schema: JSON of the table's columns.

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
        """Return the response header for a format."""
        parts = [f"responseformat={form.value}"]
        if self.wants_end:
            parts.append("includeendstreamaction=true")
        return ";".join(parts)
