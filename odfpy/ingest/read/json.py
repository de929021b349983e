"""Reading JSON and newline-delimited JSON (ODF specification, "ReadStep: Json" and "ReadStep: NdJson").

Fields that the schema lacks are ignored, missing ones are null. Without a schema, it is inferred from the whole file.
Arrow's reader is tried first, in parallel. Pieces that it rejects, or might not read exactly, are read again by Python,
record by record, and that result is final. Arrow's result is only used if both agree.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from odfpy.chain.read_steps import ReadJson, ReadNdJson
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.errors import BadValue
from odfpy.ingest.read.files import PIECE_SIZE, Piece, TextFile, cut_at_line, in_turn, is_utf8, map_pieces
from odfpy.ingest.read.json_array import JsonArray, cut_at_item
from odfpy.ingest.read.json_columns import to_array
from odfpy.ingest.read.json_inference import UNKNOWN, infer_in_turn, infer_schema
from odfpy.ingest.read.json_records import Records, parse_array, parse_series
from odfpy.ingest.read.part import WHOLE, FilePart, parts_between
from odfpy.ingest.read.text import DECIMAL_DIGITS, TimeFormats
from odfpy.ingest.read.typed import Misfit, fit_table

# Arrow 26 crashes if a text begins with `null`, and when it infers very deep nesting; it miscounts decimals with
# very many digits, and ignores a byte order mark at the beginning of a piece.
_STRAY_NULL = r"(?:\A|[}\n\r])[ \t\n\r]*null"
_EXTREME_DECIMAL = r"[0-9][eE][+-]?[0-9]|\.[0-9]{19}"
_MAX_DEPTH = 100
_MAX_EXACT_INTEGER = 2**53
_KEPT = (pa.types.is_boolean, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
_STEPS = np.zeros(256, "int8")
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def read_ndjson(step: ReadNdJson, schema: DataSchema | None, path: Path, name: str, part: FilePart = WHOLE) -> pa.Table:
    """Return the rows of a file with one JSON object per line, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: a record is not a JSON object, or a value does not fit; the message names the line of the record.
        IngestError: the file cannot be read.
        InvalidValue: an option of the step cannot be used.
    """
    formats = TimeFormats.of(step.date_format, step.timestamp_format)
    file = TextFile(path, name, step.encoding)
    if schema is None:
        whole = file.rest(0)
        whole.check_utf8()
        table = _series_by_arrow(whole.text, None, formats)
        return table if table is not None else table_of(parse_series(whole), None, formats)
    wanted = to_arrow(schema)

    def fit(piece: Piece) -> pa.Table:
        piece.check_utf8()
        table = _series_by_arrow(piece.text, wanted, formats)
        return table if table is not None else table_of(parse_series(piece), wanted, formats)

    pieces = file.pieces(part.start, cut_at_line, part.stop)
    return pa.concat_tables(map_pieces(pieces, fit, is_part=part.has_end))


def ndjson_parts(step: ReadNdJson, schema: DataSchema | None, path: Path, name: str, size: int) -> list[FilePart]:
    """Return the parts of a file that can be read independently, unless a guessed end is wrong; errors as above.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: approximate bytes of a part.
    """
    if schema is None or not is_utf8(step.encoding):
        return [WHOLE]
    return parts_between(TextFile(path, name, step.encoding).bounds(0, cut_at_line, size))


def read_json(step: ReadJson, schema: DataSchema | None, path: Path, name: str, part: FilePart = WHOLE) -> pa.Table:
    """Return the rows of a file that has a JSON array of objects, possibly below `subPath`, or of a part of it.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        part: the part to read; all of the file by default.

    Raises:
        BadValue: the file is not JSON, has no such array, or a value does not fit; the message names the line.
        IngestError: the file cannot be read.
        InvalidValue: an option of the step cannot be used.
    """
    formats = TimeFormats.of(step.date_format, step.timestamp_format)
    wanted = None if schema is None else to_arrow(schema)
    keys = _keys(step)
    file = TextFile(path, name, step.encoding)
    is_small = part == WHOLE and file.head(PIECE_SIZE).is_last
    array = None if is_small else JsonArray.of(file, keys)
    if array is not None:
        return _read_pieces(file, array, wanted, formats, part)
    document = file.rest(0)
    document.check_utf8()
    table = None if wanted is None else _array_by_arrow(document.text, keys, wanted, formats)
    return table if table is not None else table_of(parse_array(document, keys), wanted, formats)


def json_parts(step: ReadJson, schema: DataSchema | None, path: Path, name: str, size: int) -> list[FilePart]:
    """Return the parts of the array that can be read independently; errors as above.

    Args:
        step: the read step.
        schema: the schema that the source declares, None for none.
        path: the file.
        name: name of the file in messages.
        size: approximate bytes of a part.
    """
    if schema is None or not is_utf8(step.encoding):
        return [WHOLE]
    file = TextFile(path, name, step.encoding)
    array = JsonArray.of(file, _keys(step))
    return [WHOLE] if array is None else parts_between(file.bounds(array.start, cut_at_item, size))


def json_schema(step: ReadJson | ReadNdJson, path: Path, name: str) -> pa.Schema:
    """Infer the schema of a file; only pieces of it are held in memory.

    Args:
        step: the read step.
        path: the file.
        name: name of the file in messages.

    Raises:
        BadValue: a record is not a JSON object, or no type fits all values of a column; the message names the line.
        IngestError: the file cannot be read.
        InvalidValue: an option of the step cannot be used.
    """
    file = TextFile(path, name, step.encoding)
    if isinstance(step, ReadJson):
        array = JsonArray.of(file, _keys(step))
        return pa.schema([]) if array is None else _inferred_from(file, array)

    def parse(piece: Piece) -> Records:
        piece.check_utf8()
        return parse_series(piece)

    return infer_in_turn(lambda: in_turn(file.pieces(0, cut_at_line), parse))


def _keys(step: ReadJson) -> list[str]:
    return step.sub_path.split(".") if step.sub_path else []


def _inferred_from(file: TextFile, array: JsonArray) -> pa.Schema:
    return infer_in_turn(lambda: in_turn(file.pieces(array.start, cut_at_item), array.parse))


def _read_pieces(
    file: TextFile, array: JsonArray, wanted: pa.Schema | None, formats: TimeFormats, part: FilePart
) -> pa.Table:
    """Return the rows of a large document, or of a part of it, with only a few pieces in memory."""
    schema = _inferred_from(file, array) if wanted is None else wanted

    def fit(piece: Piece) -> pa.Table:
        piece.check_utf8()
        end = cut_at_item(piece.text) if piece.is_last else len(piece.text)
        items = piece.text[:end].lstrip()
        has_comma = items.startswith(b",")
        table = None
        if has_comma is not array.begins(piece):
            table = _array_by_arrow(b"[" + items[has_comma:] + b"]", [], schema, formats)
        if table is None:
            return table_of(array.parse(piece), schema, formats)
        if piece.is_last:
            array.parse(replace(piece, start=piece.start + end, text=piece.text[end:]))
        return table

    pieces = file.pieces(part.start or array.start, cut_at_item, part.stop)
    return pa.concat_tables(map_pieces(pieces, fit, is_part=part.has_end))


def table_of(records: Records, wanted: pa.Schema | None, formats: TimeFormats) -> pa.Table:
    """Convert records to rows, with the given schema or one that fits all of them.

    Args:
        records: the records.
        wanted: the schema of the rows, None to infer one.
        formats: formats of dates and timestamps.

    Raises:
        BadValue: a value does not fit; the message names the line of its record.
    """
    try:
        schema = infer_schema(records.objects) if wanted is None else wanted
        if records.objects and not schema.names:
            raise BadValue(f"{records.place(0)}: the records have no members", hint="Give their columns in a schema.")
        columns = [
            to_array([record.get(field.name) for record in records.objects], field.type, field.name, formats)
            for field in schema
        ]
        return fit_table([pa.chunked_array([column]) for column in columns], schema, formats)
    except Misfit as misfit:
        raise misfit.at(records.place(misfit.row)) from None


# --- Arrow's reader --------------------------------------------------------------------------------------------------


def _series_by_arrow(text: bytes, wanted: pa.Schema | None, formats: TimeFormats) -> pa.Table | None:
    """Return the rows, or None if Arrow's reader might not read them exactly."""
    if not text.strip() or (b"null" in text and _has(text, _STRAY_NULL)) or text.startswith(codecs.BOM_UTF8):
        return None
    try:
        source = _inferred_schema(text) if wanted is None else pa.schema([_source_field(field) for field in wanted])
        if not source.names or _is_risky(text, source):
            return None
        table = _parse(text, source)
        return _checked(table, source if wanted is None else wanted, formats, inferred=wanted is None)
    except (pa.ArrowException, UnicodeDecodeError, Misfit):
        return None


def _array_by_arrow(text: bytes, keys: Sequence[str], wanted: pa.Schema, formats: TimeFormats) -> pa.Table | None:
    """Return the rows of an array, or None as above: the document is read as one record with a list of structs."""
    try:
        rows = pa.list_(pa.struct([_source_field(field) for field in wanted]))
        path = list(keys) or ["rows"]
        if not keys:
            text, rows = b'{"rows":[' + text + b"]}", pa.list_(rows)
        for key in reversed(path[1:]):
            rows = pa.struct([pa.field(key, rows)])
        source = pa.schema([pa.field(path[0], rows)])
        if text.lstrip().startswith(b"null") or _is_risky(text, source):
            return None
        document = _parse(text, source)
        if document.num_rows != 1:
            return None
        found = document.column(0).chunk(0)
        for key in path[1:]:
            found = found.field(key)
        if not keys:
            found = found.flatten() if pc.list_value_length(found)[0].as_py() == 1 else found
        items = found.flatten()
        if found.null_count or items.null_count or len(found) != 1 or not pa.types.is_struct(items.type):
            return None
        table = pa.Table.from_arrays(items.flatten(), names=wanted.names)
        return _checked(table, wanted, formats, inferred=False)
    except (pa.ArrowException, UnicodeDecodeError, Misfit):
        return None


def _parse(text: bytes, schema: pa.Schema | None) -> pa.Table:
    read = json.ReadOptions(use_threads=False, block_size=min(len(text) + 1, 2**31 - 1))
    unexpected = "infer" if schema is None else "ignore"
    parse = json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected, newlines_in_values=True)
    return json.read_json(pa.BufferReader(text), read, parse)


def _checked(table: pa.Table, wanted: pa.Schema, formats: TimeFormats, *, inferred: bool) -> pa.Table | None:
    table.validate(full=True)
    if not all(_is_safe(chunk, inferred=inferred) for column in table.columns for chunk in column.chunks):
        return None
    return fit_table([table.column(name) for name in wanted.names], wanted, formats)


def _is_risky(text: bytes, source: pa.Schema) -> bool:
    rooms = [room for field in source for room in _rooms(field.type)]
    return bool(rooms) and _has(text, f"{_EXTREME_DECIMAL}|[0-9]{{{min(rooms) + 1}}}")


def _rooms(kind: pa.DataType) -> list[int]:
    """Return how many digits each decimal in a type has room for before the point, as it is stored."""
    if pa.types.is_decimal(kind):
        return [max(DECIMAL_DIGITS[kind.byte_width] - kind.scale, 0)]
    return [room for index in range(kind.num_fields) for room in _rooms(kind.field(index).type)]


def _has(text: bytes, pattern: str) -> bool:
    """Search with Arrow, which is ten times as fast as Python and does not block other threads."""
    return bool(pc.match_substring_regex(pa.array([text], pa.large_binary()), pattern)[0].as_py())


def _inferred_schema(text: bytes) -> pa.Schema:
    """Return the schema that Arrow infers, except that text stays text.

    Raises:
        ArrowNotImplementedError: the text has to be read by Python.
    """
    depth = 0
    for start in range(0, len(text), PIECE_SIZE):
        steps = _STEPS[np.frombuffer(text, "uint8", min(PIECE_SIZE, len(text) - start), start)]
        depths = steps.cumsum(dtype="int32") + depth
        depth = int(depths[-1])
        if depths.max() > _MAX_DEPTH:
            raise pa.ArrowNotImplementedError("nested too deeply")
    return pa.schema([pa.field(field.name, _as_inferred(field.type, UNKNOWN)) for field in _parse(text, None).schema])


def _as_inferred(arrow: pa.DataType, unknown: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(arrow) and arrow.num_fields:
        return pa.struct([pa.field(field.name, _as_inferred(field.type, unknown)) for field in arrow.fields])
    if pa.types.is_list(arrow):
        return pa.list_(_as_inferred(arrow.value_type, pa.string()))
    if pa.types.is_nested(arrow):
        raise pa.ArrowNotImplementedError("an object without members")
    if pa.types.is_null(arrow):
        return unknown
    return pa.string() if pa.types.is_temporal(arrow) else arrow


def _source_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _source_type(field.type))


def _source_type(wanted: pa.DataType) -> pa.DataType:
    """Return the type that Arrow reads values as: text for all but numbers and booleans."""
    if pa.types.is_struct(wanted):
        return pa.struct([_source_field(field) for field in wanted.fields])
    if pa.types.is_list(wanted) or pa.types.is_fixed_size_list(wanted):
        return pa.list_(_source_type(wanted.value_type))
    if pa.types.is_map(wanted):
        raise pa.ArrowNotImplementedError("maps are read by Python")
    if any(is_kind(wanted) for is_kind in _KEPT):
        return wanted
    if pa.types.is_floating(wanted) and not pa.types.is_float16(wanted):
        return wanted
    return pa.string()


def _is_safe(array: pa.Array, *, inferred: bool) -> bool:
    """Return whether floats have exactly the value of the text.

    Arrow accepts notations that JSON does not have, returns infinity for values out of range, and infers floats for
    large integers.
    """
    if pa.types.is_struct(array.type):
        return all(_is_safe(array.field(i), inferred=inferred) for i in range(array.type.num_fields))
    if pa.types.is_list(array.type):
        return _is_safe(array.values, inferred=inferred)
    if not pa.types.is_floating(array.type):
        return True
    bounds = pc.min_max(array).as_py()
    limit = _MAX_EXACT_INTEGER if inferred else float("inf")
    in_range = bounds["min"] is None or (bounds["min"] > -limit and bounds["max"] < limit)
    return in_range and not pc.any(pc.is_nan(array)).as_py()
