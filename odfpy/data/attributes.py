"""Extra attributes of events and schema fields: a JSON object that is stored with them and not interpreted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from odfpy.errors import InvalidValue
from odfpy.values import dataclass

_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class ExtraAttributes:
    """Custom attributes as their original JSON text, since that text is hashed.

    Attributes:
        entries: one JSON object; odfpy writes it with sorted top-level keys and without spaces.
    """

    entries: str

    def __post_init__(self) -> None:
        try:
            value = json.loads(self.entries, parse_constant=_refuse_constant)
            json.dumps(value, ensure_ascii=False).encode("utf-8")  # escapes may contain unpaired surrogates
        except (ValueError, RecursionError) as error:
            raise InvalidValue(f"Extra attributes are not JSON: {self.entries[:80]!r}") from error
        if not isinstance(value, dict):
            raise InvalidValue(f"Extra attributes are not a JSON object: {self.entries[:80]!r}")
        if _depth(value) > _MAX_DEPTH:
            raise InvalidValue(f"Extra attributes are nested more than {_MAX_DEPTH} levels deep")

    @classmethod
    def of(cls, attributes: Mapping[str, Any]) -> ExtraAttributes:
        """Return the attributes of a mapping, in canonical form.

        Raises:
            InvalidValue: a value cannot be written as JSON.
        """
        try:
            # Only the top level is sorted, as in the reference implementation: the text is hashed.
            ordered = {key: attributes[key] for key in sorted(attributes)}
            return cls(json.dumps(ordered, separators=(",", ":"), ensure_ascii=False, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidValue(f"Extra attributes cannot be written as JSON: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a dictionary."""
        value: dict[str, Any] = json.loads(self.entries)
        return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    """Return the levels of nesting, 0 for a scalar. There is no recursion, since the text is untrusted."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, (dict, list))]:
        depth += 1
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return depth
