"""Columns that link to objects: files that lie beside the slices of a dataset, by their hashes (RFC-017).

A column of text is one by its attribute `opendatafabric.org/type`. Two attributes of ours may stand beside that: they
name columns of the same rows that say more of the object.
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
        name: of the column.
        size: the column with the bytes of the object, None if there is none.
        removed: the column with the time at which the bytes were let go, null for those that are kept; None if there
            is none.
    """

    name: str
    size: str | None = None
    removed: str | None = None

    @property
    def extra(self) -> ExtraAttributes:
        """Return the attributes that make a column a link."""
        beside = {SIZE_COLUMN: self.size, REMOVED_COLUMN: self.removed}
        return ExtraAttributes.of(
            {
                TYPE: {"kind": _LINK, "linkType": {"kind": "Multihash"}},
                **{key: name for key, name in beside.items() if name is not None},
            }
        )


def link_columns(schema: DataSchema | None) -> tuple[ObjectLinkColumn, ...]:
    """Return the columns of a schema that link to objects, without those whose links are not supported here.

    What is wrong with columns beside them is for `check_links` to say: here such a column counts as none.
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
    """Return the paths of fields whose links are not supported here, such as those of fields within others."""
    if schema is None:
        return ()
    top = [field.name for field in schema.fields if _problem_in(field) is not None]
    return (*top, *(path for field in schema.fields for path in _inner_links(field.type, field.name)))


def check_links(schema: DataSchema) -> None:
    """Check that all links of a schema can be read, and that the columns beside them are there.

    Raises:
        SchemaError: one cannot, or is not; the message names the column.
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
    if field.extra is None or TYPE not in field.extra.entries:  # parsed for few
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
