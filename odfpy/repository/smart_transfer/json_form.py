"""JSON encoding of messages, in the form of the reference implementation (serde).

record        {"field": ...}, in snake_case; a missing value is null, and unknown fields are ignored
union         {"Name": {...}}; a member without content may be the bare name
bytes         [31, 139, ...]
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from odfpy.data.multihash import Multihash
from odfpy.data.scalars import IntRange
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias
from odfpy.errors import InvalidValue
from odfpy.repository.peer_errors import ProtocolViolation

T = TypeVar("T")


def to_json(value: Any) -> Any:
    """Encode a record as a JSON tree."""
    return _write(type(value), value)


def from_json(type_: type[T], tree: Any, path: str = "") -> T:
    """Decode a record.

    Args:
        type_: the class of the record.
        tree: the JSON tree.
        path: path of the tree in the message, for errors.

    Raises:
        ProtocolViolation: the tree does not match the class; the message has the path.
    """
    value: T = _read(type_, tree, path or type_.__name__)
    return value


def name_of(member: type) -> str:
    """Return the name of a member of a union."""
    name: str = getattr(member, "WIRE_NAME", member.__name__)
    return name


@cache
def _hints(record: Any) -> dict[str, Any]:
    hints = get_type_hints(record, include_extras=True)
    return {field.name: hints[field.name] for field in fields(record)}


def _members(type_: Any) -> tuple[type, ...]:
    """Return the members of a union, none for other types."""
    return get_args(type_) if get_origin(type_) in (Union, types.UnionType) else ()


def _write(type_: Any, value: Any) -> Any:
    members = [member for member in _members(type_) if member is not type(None)]
    if value is None:
        return None
    if len(members) > 1:
        content = _write(type(value), value)
        return name_of(type(value)) if getattr(value, "IS_BARE", False) else {name_of(type(value)): content}
    match value:
        case Enum():
            return value.value
        case bytes():
            return list(value)
        case tuple():
            return [_write(type(part), part) for part in value]
        case bool() | int() | str():
            return value
    record: Any = type(value)
    if record in _TEXTS:
        return str(value)
    return {name: _write(hint, getattr(value, name)) for name, hint in _hints(record).items()}


def _read(type_: Any, tree: Any, path: str) -> Any:
    members = _members(type_)
    if type(None) in members:
        if tree is None:
            return None
        members = tuple(member for member in members if member is not type(None))
        type_ = members[0]
    if len(members) > 1:
        return _read_member(members, tree, path)
    origin, arguments = get_origin(type_), get_args(type_)
    if origin is Annotated:
        return _read_integer(arguments[1], tree, path)
    if origin is tuple:
        _expect(isinstance(tree, list), path, "a list", tree)
        return tuple(_read(arguments[0], part, f"{path}[{at}]") for at, part in enumerate(tree))
    if type_ in _TEXTS:
        return _read_text(_TEXTS[type_], tree, path)
    if type_ is bytes:
        return _read_bytes(tree, path)
    if type_ is bool:
        _expect(isinstance(tree, bool), path, "true or false", tree)
        return tree
    if issubclass(type_, Enum):
        return _read_text(lambda text: _member_of(type_, text), tree, path)
    _expect(isinstance(tree, dict), path, "an object", tree)
    return type_(**{name: _read(hint, tree.get(name), f"{path}.{name}") for name, hint in _hints(type_).items()})


def _read_member(members: tuple[type, ...], tree: Any, path: str) -> Any:
    by_name = {name_of(member): member for member in members}
    name: Any = tree if isinstance(tree, str) else None
    content: Any = {}
    if isinstance(tree, dict) and len(tree) == 1:
        name, content = next(iter(tree.items()))
    if name not in by_name:
        raise ProtocolViolation(f"{path}: expected one of {', '.join(by_name)}, found {_beginning(tree)}")
    return _read(by_name[name], content, f"{path}.{name}")


def _read_integer(bounds: IntRange, tree: Any, path: str) -> int:
    _expect(isinstance(tree, int) and not isinstance(tree, bool), path, "a whole number", tree)
    _expect(bounds.least <= tree <= bounds.greatest, path, f"{bounds.least} to {bounds.greatest}", tree)
    number: int = tree
    return number


def _read_bytes(tree: Any, path: str) -> bytes:
    _expect(isinstance(tree, list), path, "a list of bytes", tree)
    try:
        return bytes(tree)
    except (ValueError, TypeError) as error:
        raise ProtocolViolation(f"{path}: expected numbers from 0 to 255") from error


def _read_text(parse: Callable[[str], Any], tree: Any, path: str) -> Any:
    _expect(isinstance(tree, str), path, "text", tree)
    try:
        return parse(tree)
    except InvalidValue as error:
        raise ProtocolViolation(f"{path}: {error.message}") from error


def _member_of(type_: type[Enum], text: str) -> Enum:
    try:
        return type_(text)
    except ValueError:
        known = ", ".join(str(member.value) for member in type_)
        raise InvalidValue(f"expected one of {known}, found {_beginning(text)}") from None


def _expect(is_so: bool, path: str, wanted: str, tree: Any) -> None:
    if not is_so:
        raise ProtocolViolation(f"{path}: expected {wanted}, found {_beginning(tree)}")


def _beginning(tree: Any) -> str:
    """Return an excerpt of a value, which may be as large as a message."""
    match tree:
        case None:
            return "nothing"
        case dict():
            return f"an object with {', '.join(repr(str(key)[:40]) for key in list(tree)[:5]) or 'nothing in it'}"
        case list():
            return f"a list of {len(tree)}"
    return repr(tree if isinstance(tree, (bool, float)) else str(tree)[:60])


_TEXTS: dict[type, Callable[[str], Any]] = {
    str: lambda text: text,
    Multihash: Multihash.parse,
    DatasetId: DatasetId.parse,
    DatasetAlias: DatasetAlias.parse,
    Timestamp: Timestamp.parse,
}
