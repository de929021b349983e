"""Events of Ethereum contracts: parsing of signatures, and decoding of logs.

    TokensBurned(address indexed from, uint256 amount, uint256 ethAmount, uint256 time)

In Arrow an event is a struct: indexed parameters first, then the others. Addresses and bytes are Binary; integers of up
to 32 and 64 bits are Int32, UInt32, Int64, UInt64; longer ones are text, since Arrow has no such integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from odfpy.errors import InvalidValue
from odfpy.extras import needs_extra

if TYPE_CHECKING:
    import pyarrow as pa
    from eth_abi.grammar import BasicType

_SIGNATURE = re.compile(r"\s*(?:event\s+)?([A-Za-z_$][\w$]*)\s*\(([^()]*)\)\s*;?\s*", re.ASCII)
_PARAMETER = re.compile(r"([a-z]+[0-9]*(?:\[[0-9]*\])*)(\s+indexed)?(?:\s+([A-Za-z_$][\w$]*))?", re.ASCII)
_SHORT = re.compile(r"^(u?int)(?![0-9])")
_HINT = "Write it as in the contract: Transfer(address indexed from, address indexed to, uint256 value)."


class NotOfThisEvent(ValueError):
    """A log belongs to another event, or is malformed."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an event: its full type, such as `uint256` or `address[]`, and its name, empty for none."""

    type: str
    name: str
    is_indexed: bool

    @property
    def is_hashed(self) -> bool:
        """True if a log contains only the hash of its value."""
        kind = _parsed(self.type)
        return self.is_indexed and (kind.is_dynamic or kind.arrlist is not None)

    @property
    def abi_type(self) -> str:
        """The type of the logged value."""
        return "bytes32" if self.is_hashed else self.type


@dataclass(frozen=True)
class EventSignature:
    """The signature of an event."""

    name: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def parse(cls, text: str) -> EventSignature:
        """Parse a signature.

        Raises:
            InvalidValue: the signature is invalid, or has an unsupported type.
        """
        match = _SIGNATURE.fullmatch(text)
        if match is None:
            raise InvalidValue(f"{_shorten(text)!r} is not a signature of an event", hint=_HINT)
        parts = match[2].split(",") if match[2].strip() else []
        return cls(match[1], tuple(_parameter(part.strip(), text) for part in parts))

    @cached_property
    def selector(self) -> bytes:
        """The first topic of the event's logs, 32 bytes."""
        with needs_extra("ethereum", "Events of Ethereum"):
            from eth_hash.auto import keccak
        types = ",".join(parameter.type for parameter in self.parameters)
        return bytes(keccak(f"{self.name}({types})".encode()))

    @property
    def fields(self) -> tuple[Parameter, ...]:
        """The parameters in the order of the struct's members."""
        return tuple(sorted(self.parameters, key=lambda parameter: not parameter.is_indexed))

    def arrow_type(self) -> pa.StructType:
        """Return the struct type of a decoded log.

        Raises:
            InvalidValue: parameters lack names, or have the same name.
        """
        import pyarrow as pa

        names = [parameter.name for parameter in self.fields]
        if "" in names or len(set(names)) < len(names) or not names:
            raise InvalidValue(f"The parameters of the event {self.name} need names, each its own", hint=_HINT)
        return pa.struct([pa.field(field.name, _arrow_type(field.abi_type), nullable=False) for field in self.fields])

    def to_json(self, topics: Sequence[bytes], data: bytes) -> str:
        """Return the values of a log as JSON with sorted keys: `name` and the parameters; bytes are hexadecimal.

        Raises:
            NotOfThisEvent: topics or data do not match the event.
        """
        values = {"name": self.name, **self.decode(topics, data)}
        return json.dumps(values, default=bytes.hex, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def decode(self, topics: Sequence[bytes], data: bytes) -> dict[str, Any]:
        """Return the values of a log, in the types of `arrow_type`.

        Raises:
            NotOfThisEvent: topics or data do not match the event.
        """
        with needs_extra("ethereum", "Events of Ethereum"):
            from eth_abi.abi import decode
            from eth_abi.exceptions import DecodingError
        indexed = [field for field in self.fields if field.is_indexed]
        others = [field for field in self.fields if not field.is_indexed]
        if not topics or topics[0] != self.selector:
            raise NotOfThisEvent("the first topic differs")
        if len(topics) != len(indexed) + 1:
            raise NotOfThisEvent(f"it has {len(topics) - 1} indexed parameters, not {len(indexed)}")
        try:
            values = [decode([field.abi_type], topic)[0] for field, topic in zip(indexed, topics[1:], strict=True)]
            values += decode([field.abi_type for field in others], data)
        except (DecodingError, UnicodeDecodeError, OverflowError) as error:
            raise NotOfThisEvent(str(error)) from error
        return {field.name: _value(field.abi_type, value) for field, value in zip(self.fields, values, strict=True)}


def selector_of(signature: str) -> bytes:
    """Return the first topic of an event's logs.

    Raises:
        InvalidValue: the text is not a signature.
    """
    return EventSignature.parse(signature).selector


# --- Types -----------------------------------------------------------------------------------------------------------


def _parameter(text: str, signature: str) -> Parameter:
    match = _PARAMETER.fullmatch(text)
    if match is None:
        raise InvalidValue(f"Parameter {text!r} of {_shorten(signature)!r} is not valid", hint=_HINT)
    parameter = Parameter(_SHORT.sub(r"\g<1>256", match[1]), match[3] or "", match[2] is not None)
    _parsed(parameter.type)
    return parameter


@cache
def _parsed(text: str) -> BasicType:
    """Return a parsed type, if values of it can be decoded."""
    with needs_extra("ethereum", "Events of Ethereum"):
        from eth_abi.exceptions import ABITypeError, ParseError
        from eth_abi.grammar import BasicType, parse
    try:
        kind = parse(text)
        kind.validate()
    except (ABITypeError, ParseError) as error:
        raise InvalidValue(f"{text!r} is not a type of a parameter", hint=str(error)) from error
    if not isinstance(kind, BasicType) or kind.base not in ("uint", "int", "address", "bool", "bytes", "string"):
        raise InvalidValue(
            f"Parameters of the type {text!r} are not supported", hint="Decode the data in `preprocess`."
        )
    return kind


def _arrow_type(text: str) -> pa.DataType:
    import pyarrow as pa

    kind = _parsed(text)
    if kind.arrlist is not None:
        return pa.list_(pa.field("item", _arrow_type(kind.item_type.to_type_str()), nullable=False))
    if kind.base in ("int", "uint"):
        if kind.sub > 64:
            return pa.string()
        return getattr(pa, f"{kind.base}{32 if kind.sub <= 32 else 64}")()
    return {"bool": pa.bool_(), "string": pa.string()}.get(kind.base, pa.binary())


def _value(text: str, value: Any) -> Any:
    """Convert a decoded value to the type for Arrow."""
    kind = _parsed(text)
    if kind.arrlist is not None:
        inner = kind.item_type.to_type_str()
        return [_value(inner, item) for item in value]
    if kind.base == "address":
        return bytes.fromhex(value.removeprefix("0x"))
    return str(value) if kind.base in ("int", "uint") and kind.sub > 64 else value


def _shorten(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 100 else f"{flat[:97]}..."
