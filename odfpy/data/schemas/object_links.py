"""Columns with links to objects: files stored beside the slices of a dataset, identified by hash (RFC-017).

The attribute `opendatafabric.org/type` marks a text column as a link. Two more attributes, defined by odfpy, may name
columns of the same rows with further facts about the object.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.errors import SchemaError
from odfpy.values import dataclass

TYPE: Final = "opendatafabric.org/type"
SIZE_COLUMN: Final = "org.odfpy/sizeColumn"
REMOVED_COLUMN: Final = "org.odfpy/removedColumn"

_LINK: Final = "ObjectLink"
_INTEGERS: Final = (odf.Int8, odf.Int16, odf.Int32, odf.Int64, odf.UInt8, odf.UInt16, odf.UInt32, odf.UInt64)


@dataclass(frozen=True, slots=True)
class ObjectLinkColumn:
    """A column whose values are the hashes of objects.

    Attributes:
        name: name of the column.
        size: the column with the size of the object in bytes, None if there is none.
        removed: the column with the time at which the object was removed, null for existing objects; None if there is
            no such column.
    """

    name: str
    size: str | None = None
    removed: str | None = None

    @property
    def extra(self) -> ExtraAttributes:
        """The attributes that mark a column as a link."""
        beside = {SIZE_COLUMN: self.size, REMOVED_COLUMN: self.removed}
        return ExtraAttributes.of(
            {
                TYPE: {"kind": _LINK, "linkType": {"kind": "Multihash"}},
                **{key: name for key, name in beside.items() if name is not None},
            }
        )


def link_columns(schema: DataSchema | None) -> tuple[ObjectLinkColumn, ...]:
    """Return the columns of a schema that link to objects, without unsupported links.

    Faults in their additional columns are reported by `check_links`; here such a column counts as absent.
    """
    if schema is None:
        return ()
    found = []
    for field in schema.fields:
        attributes = _link_attributes(field)
        if attributes is not None and _problem_of(field, attributes) is None:
            size, removed = (_column_beside(schema, attributes.get(key)) for key in (SIZE_COLUMN, REMOVED_COLUMN))
            is_size = size is not None and isinstance(_plain(size.type), _INTEGERS)
            is_time = removed is not None and isinstance(_plain(removed.type), odf.Timestamp)
            found.append(
                ObjectLinkColumn(
                    field.name,
                    size.name if is_size and size is not None else None,
                    removed.name if is_time and removed is not None else None,
                )
            )
    return tuple(found)


def unread_links(schema: DataSchema | None) -> tuple[str, ...]:
    """Return the paths of fields with unsupported links, such as fields nested in others."""
    if schema is None:
        return ()
    top = [field.name for field in schema.fields if _problem_in(field) is not None]
    return (*top, *(path for field in schema.fields for path in _inner_links(field.type, field.name)))


def check_links(schema: DataSchema) -> None:
    """Check that all links of a schema are supported, and that their additional columns exist.

    Raises:
        SchemaError: a link is unsupported or lacks a column; the message names the column.
    """
    for path in unread_links(schema):
        field = schema.field(path)
        problem = None if field is None else _problem_in(field)
        raise SchemaError(
            f"Column {path!r} cannot link to objects: {problem or 'it is part of another column'}",
            hint=f"A link is a column of text with {TYPE}: {{kind: {_LINK}, linkType: {{kind: Multihash}}}}.",
        )
    for field in schema.fields:
        attributes = _link_attributes(field) or {}
        for key, types, what in (
            (SIZE_COLUMN, _INTEGERS, "an integer"),
            (REMOVED_COLUMN, (odf.Timestamp,), "a timestamp"),
        ):
            _check_beside(schema, field, key, attributes.get(key), types, what)


def _check_beside(
    schema: DataSchema, field: DataField, key: str, name: Any, types: tuple[type, ...], what: str
) -> None:
    if name is None:
        return
    beside = _column_beside(schema, name)
    if beside is None or not isinstance(_plain(beside.type), types):
        problem = "there is no such column" if beside is None else f"that column is not {what}"
        raise SchemaError(f"Column {field.name!r} has {key}: {name!r}, but {problem}")
    if key == REMOVED_COLUMN and not beside.is_optional:
        raise SchemaError(f"Column {field.name!r} has {key}: {name!r}, but that column has no nulls")


def _column_beside(schema: DataSchema, name: Any) -> DataField | None:
    return schema.field(name) if isinstance(name, str) else None


def _problem_in(field: DataField) -> str | None:
    attributes = _link_attributes(field)
    return None if attributes is None else _problem_of(field, attributes)


def _link_attributes(field: DataField) -> dict[str, Any] | None:
    """Return the attributes of a field that is marked as a link."""
    if field.extra is None or TYPE not in field.extra.entries:  # only few fields need to be parsed
        return None
    attributes = field.extra.to_dict()
    kind = attributes.get(TYPE)
    return attributes if isinstance(kind, dict) and kind.get("kind") == _LINK else None


def _problem_of(field: DataField, attributes: dict[str, Any]) -> str | None:
    link = attributes[TYPE].get("linkType")
    if not isinstance(link, dict) or link.get("kind") != "Multihash":
        return "its linkType is unknown; the known one is Multihash"
    return None if isinstance(_plain(field.type), odf.String) else "it is not of type String"


def _inner_links(kind: DataType, path: str) -> Iterator[str]:
    match kind:
        case odf.Option(inner):
            yield from _inner_links(inner, path)
        case odf.List(item, _):
            yield from _inner_links(item, path)
        case odf.Map(key, value, _):
            yield from _inner_links(key, path)
            yield from _inner_links(value, path)
        case odf.Struct(fields):
            for field in fields:
                if _link_attributes(field) is not None:
                    yield f"{path}.{field.name}"
                yield from _inner_links(field.type, f"{path}.{field.name}")


def _plain(kind: DataType) -> DataType:
    return kind.inner if isinstance(kind, odf.Option) else kind
