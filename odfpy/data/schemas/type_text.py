"""Types in the notation of messages: `Option<Decimal(10, 2)>`, `List<String>`, `Struct<x: Int32>`."""

from __future__ import annotations

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataType


def type_text(data_type: DataType) -> str:
    """Return the type on one line."""
    name = type(data_type).__name__
    match data_type:
        case odf.Option(inner):
            return f"Option<{type_text(inner)}>"
        case odf.List(item_type, fixed_length):
            return f"List<{type_text(item_type)}>" + ("" if fixed_length is None else f"[{fixed_length}]")
        case odf.Map(key_type, value_type):
            return f"Map<{type_text(key_type)}, {type_text(value_type)}>"
        case odf.Struct(fields):
            return f"Struct<{', '.join(f'{field.name}: {type_text(field.type)}' for field in fields)}>"
        case odf.Decimal(precision, scale):
            return f"Decimal({precision}, {scale})"
        case odf.Binary(fixed_length) if fixed_length is not None:
            return f"Binary({fixed_length})"
        case odf.Timestamp(unit, timezone) if unit or timezone:
            return f"Timestamp({', '.join(text for text in (unit and unit.value, timezone) if text)})"
        case odf.Time(unit) | odf.Duration(unit) if unit:
            return f"{name}({unit.value})"
        case _:
            return name
