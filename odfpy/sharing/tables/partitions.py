"""Conversion of partition values to and from text (Delta protocol, "Partition Value Serialization")."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from odfpy.sharing.errors import CannotShare

if TYPE_CHECKING:
    import pyarrow as pa


def partition_text(value: Any) -> str | None:
    """Return a value in the protocol's format; None for NULL and for the empty text."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(dt.timezone.utc)
        return f"{value:%Y-%m-%d %H:%M:%S.%f}".zfill(26)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace") or None
    return str(value) or None


def partition_scalars(values: Mapping[str, str | None], types: Mapping[str, pa.DataType]) -> dict[str, pa.Scalar]:
    """Parse the partition values of a file.

    Args:
        values: values in the protocol's format.
        types: types of the columns.

    Raises:
        CannotShare: a text is not a valid value.
    """
    return {name: _scalar(name, values[name], kind) for name, kind in types.items() if name in values}


def _scalar(name: str, text: str | None, kind: pa.DataType) -> pa.Scalar:
    import pyarrow as pa

    if text is None or text == "":
        return pa.scalar(None, kind)
    try:
        if pa.types.is_timestamp(kind) and kind.tz is not None and not text.endswith("Z"):
            return pa.scalar(text).cast(pa.timestamp(kind.unit)).cast(kind)
        return pa.scalar(text).cast(kind)
    except (pa.ArrowException, ValueError) as error:
        raise CannotShare(
            f"The partition column {name!r} has the value {text!r}, which is not a valid {kind}",
            hint="Repair the table at its origin.",
        ) from error
