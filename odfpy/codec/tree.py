"""Conversion between values and trees of dicts, lists, strings and numbers: the common form of YAML and JSON.

Keys are camelCase, unions have `kind:`, absent fields are omitted. Reading is strict: unknown keys are rejected, and
every error names the path of the value.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

from odfpy.codec.shape import (
    DatasetReference,
    Enumeration,
    Field,
    Integer,
    Leaf,
    OneOf,
    Record,
    Sequence,
    Shape,
    fields_of,
    kind_of,
    shape_of,
)
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.schema import Int64
from odfpy.data.schemas.type_names import odf_type_for
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias, parse_ref
from odfpy.errors import InvalidValue, MalformedManifest, did_you_mean

Path = tuple[str | int, ...]
T = TypeVar("T")


class TreeError(MalformedManifest, code="E203"):
    """A tree does not have the expected shape.

    Attributes:
        path: keys and positions of the invalid value.
        problem: description of the error.
    """

    path: Path
    problem: str

    def __init__(self, path: Path, problem: str, *, hint: str | None = None) -> None:
        super().__init__(f"{format_path(path)}: {problem}" if path else problem, hint=hint)
        self.path = path
        self.problem = problem


_MAX_KEY_LENGTH = 200


def format_path(path: Path) -> str:
    """Return a path as text: `content.metadata[0].read`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part[:_MAX_KEY_LENGTH]}" for part in path)
    return text.removeprefix(".")


# --- Writing ---------------------------------------------------------------------------------------------------------


def to_tree(value: Any, type_: type | None = None) -> Any:
    """Return the tree of a record; `to_tagged_tree` also writes its `kind:`.

    Args:
        value: the record.
        type_: the class whose fields are written; by default the record's own.
    """
    return _write(Record(type_ or type(value)), value)


def to_tagged_tree(value: Any) -> Any:
    """Return the tree of a union member, with its `kind:` first."""
    return _write(OneOf((type(value),)), value)


def _write(shape: Shape, value: Any) -> Any:
    match shape:
        case Record(type_):
            return _write_fields(type_, value)
        case OneOf():
            return {"kind": kind_of(type(value)), **_write_fields(type(value), value)}
        case Sequence(item):
            return [_write(item, part) for part in value]
        case Enumeration():
            return value.value
        case Leaf(type_):
            return _LEAF_WRITERS[type_](value)
        case DatasetReference():
            return str(value)
        case Integer():
            return value


def _write_fields(record: type, value: Any) -> dict[str, Any]:
    tree = {}
    for field in fields_of(record):
        part = getattr(value, field.name)
        if part is not None:
            tree[field.key] = _write(field.shape, part)
    return tree


_LEAF_WRITERS: dict[type, Callable[[Any], Any]] = {
    str: lambda value: value,
    bool: lambda value: value,
    bytes: lambda value: base64.b64encode(value).decode(),
    Timestamp: str,
    Duration: str,
    Multihash: str,
    DatasetId: str,
    DatasetAlias: str,
    ExtraAttributes: lambda value: value.to_dict(),
}


# --- Reading ---------------------------------------------------------------------------------------------------------


def from_tree(type_: type[T] | Any, tree: Any, path: Path = ()) -> T:
    """Return the value of a tree as the given dataclass or union.

    Args:
        type_: the dataclass or union.
        tree: dicts, lists and scalars.
        path: path of the tree in the document, for messages.

    Raises:
        TreeError: the tree does not have the form of the type; the message names the path.
    """
    value: T = _read(shape_of(type_), tree, path)
    return value


def _read(shape: Shape, tree: Any, path: Path) -> Any:
    match shape:
        case Record(type_):
            return _read_record(type_, _expect_mapping(tree, path), path)
        case OneOf():
            return _read_union(shape, tree, path)
        case Sequence(item):
            if not isinstance(tree, list):
                raise TreeError(path, f"expected a list, found {_describe(tree)}")
            return tuple(_read(item, part, (*path, at)) for at, part in enumerate(tree))
        case Enumeration(type_):
            return _read_enum(type_, tree, path)
        case Integer(range_):
            if not isinstance(tree, int) or isinstance(tree, bool):
                raise TreeError(path, f"expected a whole number, found {_describe(tree)}")
            if not range_.least <= tree <= range_.greatest:
                raise TreeError(path, f"{tree} is not between {range_.least} and {range_.greatest}")
            return tree
        case Leaf(type_):
            return _read_leaf(type_, tree, path)
        case DatasetReference():
            return _read_text(parse_ref, tree, path)


def _read_union(shape: OneOf, tree: Any, path: Path) -> Any:
    mapping = {"kind": tree} if isinstance(tree, str) else _expect_mapping(tree, path)
    kinds = [kind_of(member) for member in shape.members]
    if "kind" not in mapping:
        raise TreeError(path, "`kind` is missing", hint=f"One of: {', '.join(kinds)}")
    kind = mapping["kind"]
    member = shape.member(kind) if isinstance(kind, str) else None
    if member is None:
        raise TreeError(
            (*path, "kind"),
            f"unknown kind {kind!r}",
            hint=_from_sql(shape, kind) or did_you_mean(str(kind), kinds, otherwise=f"One of: {', '.join(kinds)}"),
        )
    return _read_record(member, {key: part for key, part in mapping.items() if key != "kind"}, path)


def _from_sql(shape: OneOf, kind: Any) -> str | None:
    """Return a hint for the name of a type from databases or programs."""
    if Int64 not in shape.members or not isinstance(kind, str):
        return None
    meant = odf_type_for(kind)
    return None if meant is None else f"Write {meant}. Types of SQL belong into `ddlSchema`."


def _read_record(type_: type, mapping: dict[str, Any], path: Path) -> Any:
    known = fields_of(type_)
    unknown = set(mapping) - {field.key for field in known}
    if unknown:
        name = min(unknown)
        raise TreeError(
            (*path, name),
            f"unknown key in {kind_of(type_)}",
            hint=did_you_mean(
                name,
                [field.key for field in known],
                otherwise=f"Known keys: {', '.join(field.key for field in known) or 'none'}",
            ),
        )
    return type_(**{field.name: _read_field(type_, field, mapping, path) for field in known})


def _read_field(type_: type, field: Field, mapping: dict[str, Any], path: Path) -> Any:
    tree = mapping.get(field.key)
    if tree is None:
        if not field.optional:
            raise TreeError(path, f"`{field.key}` is missing in {kind_of(type_)}")
        return None
    return _read(field.shape, tree, (*path, field.key))


def _read_enum(type_: Any, tree: Any, path: Path) -> Any:
    for member in type_:
        if isinstance(tree, str) and member.value.lower() == tree.lower():
            return member
    values = [member.value for member in type_]
    raise TreeError(
        path, f"unknown value {tree!r}", hint=did_you_mean(str(tree), values, otherwise=f"One of: {', '.join(values)}")
    )


def _read_leaf(type_: type, tree: Any, path: Path) -> Any:
    if type_ is ExtraAttributes:
        return _parse_at(path, ExtraAttributes.of, _expect_mapping(tree, path))
    if type_ is bool:
        if not isinstance(tree, bool):
            raise TreeError(path, f"expected true or false, found {_describe(tree)}")
        return tree
    if type_ is Duration and isinstance(tree, int) and not isinstance(tree, bool):
        raise TreeError(path, f"expected a duration, found the number {tree}", hint=f"Write `{tree}s` or `{tree}m`.")
    return _read_text(_TEXT_READERS[type_], tree, path)


def _read_text(parse: Callable[[str], Any], tree: Any, path: Path) -> Any:
    if not isinstance(tree, str):
        hint = "Put it in quotes." if isinstance(tree, (int, float)) else None
        raise TreeError(path, f"expected text, found {_describe(tree)}", hint=hint)
    return _parse_at(path, parse, tree)


def _parse_at(path: Path, parse: Callable[[Any], Any], tree: Any) -> Any:
    try:
        return parse(tree)
    except InvalidValue as error:
        raise TreeError(path, error.message, hint=error.hint) from error


def _parse_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise InvalidValue(f"Not base64: {text[:40]!r}") from error


_TEXT_READERS: dict[type, Callable[[str], Any]] = {
    str: lambda text: text,
    bytes: _parse_base64,
    Timestamp: Timestamp.parse,
    Duration: Duration.parse,
    Multihash: Multihash.parse,
    DatasetId: DatasetId.parse,
    DatasetAlias: DatasetAlias.parse,
}


def _expect_mapping(tree: Any, path: Path) -> dict[str, Any]:
    if not isinstance(tree, dict):
        raise TreeError(path, f"expected a mapping, found {_describe(tree)}", hint=_other_form(tree, path))
    for key in tree:
        if not isinstance(key, str):
            raise TreeError(path, f"expected keys of text, found {key!r}")
    return tree


def _other_form(tree: Any, path: Path) -> str | None:
    """Return a hint for common mistakes, such as the older form of `schema`."""
    match path, tree:
        case (*_, "inputs", int()), str():
            return f"An input has its name under the key `datasetRef`: write {{datasetRef: {tree}}}."
        case (*_, "schema"), [str(), *_] if all(isinstance(column, str) for column in tree):
            return "A list of columns such as `id BIGINT` belongs under the key `ddlSchema`."
        case (*_, "schema"), [_, *_]:
            return "Write the list under `schema: {fields: [...]}`, or columns such as `id BIGINT` under `ddlSchema`."
    return None


def _describe(tree: Any) -> str:
    match tree:
        case None:
            return "nothing"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case bool():
            return f"the truth value {str(tree).lower()}"
        case int() | float():
            return f"the number {tree}"
        case _:
            return f"{str(tree)[:60]!r}"
