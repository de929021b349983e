"""Conversion of schemas to Spark's types, and errors for Spark's logs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from odfpy.errors import OdfError
from odfpy.flight.errors import NotForSpark
from odfpy.flight.types import plain_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the schema of a server in Spark's types.

    Raises:
        NotForSpark: this version of Spark lacks a type; the message names the column.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    found = []
    for field, sent in zip(plain_schema(schema), schema, strict=True):
        try:
            found.append(StructField(field.name, from_arrow_type(field.type)))
        except PySparkException as error:
            raise NotForSpark(
                f"This version of Spark has no type for column {field.name!r} of type {sent.type}",
                hint="Omit it (option columns), or CAST it in a query (option query).",
            ) from error
    return StructType(found)


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the exact Arrow types that Spark expects for rows of a schema."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PySpark's warnings about the version of pandas, which is not used
        from pyspark.sql.pandas.types import to_arrow_schema

    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    return to_arrow_schema(schema, **zone)


@contextmanager
def errors_with_hints() -> Iterator[None]:
    """Add code and hint of errors in the block to their messages, since Spark shows only traceback and message."""
    try:
        yield
    except OdfError as error:
        hint = f" {error.hint}" if error.hint else ""
        raise error.with_message(f"{error.message} ({error.code}).{hint}", hint=None) from error
