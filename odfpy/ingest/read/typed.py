"""Conversion of columns to the exact types and nullability of a schema; errors name the invalid value.

Readers provide columns in the natural types of their format, mostly text. Nested columns are decomposed, so that the
same rules apply at every level: members of structs are matched by name, missing ones are null, others are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.processors import processors
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import from_arrow_type, plain_array
from odfpy.errors import BadValue, SchemaError
from odfpy.ingest.read.text import (
    DEFAULT_FORMATS,
    CastFailed,
    TimeFormats,
    check_times,
    counts,
    first_unfit,
    parse_texts,
    retime,
)

_MANY_ROWS = 100_000  # from this number of rows on, threads are faster
_MAX_SHOWN_LENGTH = 100


class Misfit(Exception):
    """A value does not fit the schema.

    Attributes:
        row: index of the row.
        path: name of the column, with the path to the value inside it.
        wanted: name of the type.
        shown: the value in a readable form, or None if a required value is missing.
    """

    def __init__(self, row: int, path: str, wanted: str, shown: str | None) -> None:
        super().__init__(row, path, wanted, shown)
        self.row = row
        self.path = path
        self.wanted = wanted
        self.shown = shown

    def moved(self, row: int) -> Misfit:
        """Return the same error for another row."""
        return Misfit(row, self.path, self.wanted, self.shown)

    def at(self, place: str, *, has_formats: bool = True) -> BadValue:
        """Return the error to raise for the user.

        Args:
            place: the file and the position in it.
            has_formats: whether the read step has options for the formats of dates and times.
        """
        if self.shown is None:
            return BadValue(
                f"{place}: column {shorten(self.path)} has no value, but {self.wanted} is required",
                hint="Make the column optional in the schema (kind: Option) if its values may be missing.",
            )
        formats = "`dateFormat`" if self.wanted == "Date" else "`timestampFormat`"
        return BadValue(
            f"{place}: column {shorten(self.path)} has {shorten(self.shown)}, which is not a valid {self.wanted}",
            hint=f"Correct the input, or say how it is written with {formats}."
            if has_formats and self.wanted in ("Date", "Timestamp")
            else "Correct the input, or give the column a type that can hold such values.",
        )


def shorten(text: str) -> str:
    """Return a value for an error message."""
    return repr(text if len(text) <= _MAX_SHOWN_LENGTH else text[:_MAX_SHOWN_LENGTH] + "...")


def type_name(wanted: pa.DataType) -> str:
    """Return the name of a type in manifests."""
    match from_arrow_type(wanted):
        case odf.Decimal(precision, scale):
            return f"Decimal({precision}, {scale})"
        case odf.Binary(int(length)):
            return f"Binary({length})"
        case other:
            return type(other).__name__


def fit_table(
    columns: Sequence[pa.ChunkedArray], schema: pa.Schema, formats: TimeFormats = DEFAULT_FORMATS
) -> pa.Table:
    """Return columns as a table with a schema.

    Args:
        columns: columns of equal length, one per field, in order.
        schema: expected types and nullability.
        formats: formats of dates and timestamps.

    Raises:
        Misfit: a value is invalid; it names the first such row, and its first such column.
        SchemaError: a column has a type that is incompatible with the expected one.
    """

    def fit(task: tuple[int, int, pa.Array]) -> pa.Array | Misfit:
        column, start, chunk = task
        try:
            return fit_array(chunk, schema.field(column), formats)
        except Misfit as misfit:
            return misfit.moved(misfit.row + start)

    tasks = [(i, start, chunk) for i, column in enumerate(columns) for start, chunk in _chunks(column)]
    if columns and len(columns[0]) >= _MANY_ROWS:
        with ThreadPoolExecutor(processors()) as pool:
            results = list(pool.map(fit, tasks))
    else:
        results = [fit(task) for task in tasks]
    misfits = [result for result in results if isinstance(result, Misfit)]
    if misfits:
        raise min(misfits, key=lambda misfit: misfit.row)
    fitted: list[list[pa.Array]] = [[] for _ in columns]
    for (column, _, _), result in zip(tasks, results, strict=True):
        fitted[column].append(result)
    arrays = [pa.chunked_array(chunks, field.type) for chunks, field in zip(fitted, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def fit_array(array: pa.Array, field: pa.Field, formats: TimeFormats = DEFAULT_FORMATS) -> pa.Array:
    """Return the array with the type of the field.

    Args:
        array: the values.
        field: the expected name, type and nullability.
        formats: formats of dates and timestamps.

    Raises:
        Misfit: a value is invalid.
        SchemaError: the types have nothing in common.
    """
    return _fit(array, field, field.name, formats, None)


def _chunks(column: pa.ChunkedArray) -> list[tuple[int, pa.Array]]:
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    return [(int(start), chunk) for start, chunk in zip(starts, column.chunks, strict=False)]


def _fit(array: pa.Array, field: pa.Field, path: str, formats: TimeFormats, needed: pa.Array | None) -> pa.Array:
    """Convert a column; `needed` marks the rows in which required members need a value, None stands for all rows."""
    wanted = field.type
    if not field.nullable and array.null_count:
        nulls = array.is_null() if needed is None else pc.and_(array.is_null(), needed)
        row = pc.index(nulls, value=True).as_py()
        if row >= 0:
            raise Misfit(row, path, type_name(wanted), None)
    if pa.types.is_null(array.type) or (pa.types.is_null(wanted) and array.null_count == len(array)):
        return pa.nulls(len(array), wanted)
    if pa.types.is_struct(wanted):
        return _fit_struct(array, wanted, path, formats)
    if pa.types.is_list(wanted) or pa.types.is_fixed_size_list(wanted):
        return _fit_list(array, wanted, path, formats)
    if pa.types.is_map(wanted):
        return _fit_map(array, wanted, path, formats)
    try:
        return _convert(array, wanted, formats)
    except CastFailed:
        row = first_unfit(array, lambda part: _convert(part, wanted, formats))
        raise Misfit(row, path, type_name(wanted), _show(plain_array(array.slice(row, 1))[0])) from None
    except pa.ArrowNotImplementedError as error:
        raise _incompatible(array, wanted, path) from error


def _convert(array: pa.Array, wanted: pa.DataType, formats: TimeFormats) -> pa.Array:
    """Convert a leaf. A conversion is exact if converting back gives the same values."""
    array = plain_array(array)
    if pa.types.is_string(array.type):
        _check_text(array)
    if array.type.equals(wanted):
        return check_times(array)
    if pa.types.is_integer(array.type) and pa.types.is_decimal(wanted):
        array = array.cast(pa.string())
    if pa.types.is_string(array.type):
        return parse_texts(array, wanted, formats)
    try:
        if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(wanted):
            return check_times(retime(array, wanted))
        converted = check_times(array.cast(wanted))
        if pa.types.is_decimal(array.type) and pa.types.is_integer(wanted):
            return converted  # Arrow checks both fraction and range, but does not convert back into few digits
        # Arrow refuses whole numbers of 2^53 and more as floats, which the first conversion has shown to be exact.
        back = converted.cast(array.type, safe=not pa.types.is_integer(wanted))
    except pa.ArrowInvalid as error:
        raise CastFailed from error
    same = pc.equal(back, array)
    if pa.types.is_floating(array.type):
        same = pc.or_(same, pc.and_(pc.is_nan(back), pc.is_nan(array)))
    if not pc.all(same).as_py() and array.null_count < len(array):
        raise CastFailed
    return converted


def _check_text(array: pa.Array) -> None:
    """Check that texts are UTF-8: a file may wrongly declare so, and readers of such a slice would fail."""
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise CastFailed from error


# --- Nested columns --------------------------------------------------------------------------------------------------


def _fit_struct(array: pa.Array, wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise _incompatible(array, wanted, path)
    valid = array.is_valid() if array.null_count else None
    members = []
    for member in wanted.fields:
        index = array.type.get_field_index(member.name)
        values = array.field(index) if index >= 0 else pa.nulls(len(array), pa.null())
        members.append(_fit(values, member, f"{path}.{member.name}", formats, valid))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=list(wanted.fields), mask=mask)


def _fit_list(array: pa.Array, wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    if pa.types.is_fixed_size_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    elif not pa.types.is_list(array.type):
        array = plain_array(array)
        if not pa.types.is_list(array.type):
            raise _incompatible(array, wanted, path)
    array = _compact(array)
    if pa.types.is_fixed_size_list(wanted):
        wrong = pc.not_equal(pc.list_value_length(array), wanted.list_size)
        row = pc.index(wrong, value=True).as_py()
        if row >= 0:
            count = pc.list_value_length(array)[row].as_py()
            raise Misfit(row, path, f"List of {wanted.list_size} items", f"{count} items")
    values = _fit_items(array, array.values, wanted.value_field, f"{path}[]", formats)
    mask = array.is_null() if array.null_count else None
    variable = pa.ListArray.from_arrays(array.offsets, values, type=pa.list_(wanted.value_field), mask=mask)
    return variable.cast(wanted) if pa.types.is_fixed_size_list(wanted) else variable


def _fit_map(array: pa.Array, wanted: pa.DataType, path: str, formats: TimeFormats) -> pa.Array:
    if not pa.types.is_map(array.type):
        raise _incompatible(array, wanted, path)
    array = _compact(array)
    keys = _fit_items(array, array.keys, wanted.key_field, f"{path}{{}}", formats)
    values = _fit_items(array, array.items, wanted.item_field, f"{path}{{}}", formats)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(array.offsets, keys, values, type=wanted, mask=mask)


def _fit_items(lists: pa.Array, items: pa.Array, field: pa.Field, path: str, formats: TimeFormats) -> pa.Array:
    try:
        return _fit(items, field, path, formats, None)
    except Misfit as misfit:
        row = int(np.searchsorted(lists.offsets.to_numpy(), misfit.row, side="right")) - 1
        raise misfit.moved(row) from None


def _compact(array: pa.Array) -> pa.Array:
    """Return the array without the offset of a slice, with which lists could not be rebuilt."""
    return pa.concat_arrays([array]) if array.offset else array


def _show(value: pa.Scalar) -> str:
    kind = value.type
    try:
        if not pa.types.is_time(kind):  # Python silently drops whole days
            return str(value.as_py())
    except UnicodeDecodeError:
        return str(value.as_buffer().to_pybytes().decode(errors="backslashreplace"))
    except (ValueError, OverflowError):  # out of Python's range
        pass
    since = "midnight" if pa.types.is_time(kind) else "1970"
    return f"{counts(value)} {'days' if pa.types.is_date32(kind) else kind.unit} since {since}"


def _incompatible(array: pa.Array, wanted: pa.DataType, path: str) -> SchemaError:
    return SchemaError(
        f"Column {shorten(path)} is {shorten(str(array.type))} in the input and cannot become {type_name(wanted)}",
        hint="Give the column its own type in the schema, and convert it in the preprocessing query.",
    )
