"""Functions over JSON text that the reference implementation adds to DataFusion, for manifests that use them.

They take one key, or an array index as text; deeper values are reached with a nested `json_get_json`. Missing values,
values of another kind and invalid JSON give NULL, as in the reference implementation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from datafusion import SessionContext

_INT64: Final = range(-(2**63), 2**63)


def register_json_functions(context: SessionContext) -> None:
    """Register the functions in a session."""
    from datafusion import udf

    for name, (of_value, result) in _BY_KEY.items():
        context.register_udf(udf(_by_key(of_value, result), [pa.string(), pa.string()], result, "immutable", name))
    for name, (of_value, result) in _WHOLE.items():
        context.register_udf(udf(_over_arrays(of_value, result), [pa.string()], result, "immutable", name))


_ABSENT: Final = object()


def _by_key(of_value: Callable[[Any], Any], result: pa.DataType) -> Callable[[pa.Array, pa.Array], pa.Array]:
    def function(texts: pa.Array, keys: pa.Array) -> pa.Array:
        pairs = zip(texts.to_pylist(), keys.to_pylist(), strict=True)
        return pa.array([of_value(_member(_value(text), key)) for text, key in pairs], result)

    return function


def _over_arrays(of_value: Callable[[Any], Any], result: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    def function(texts: pa.Array) -> pa.Array:
        return pa.array([of_value(_value(text)) for text in texts.to_pylist()], result)

    return function


def _value(text: str | None) -> Any:
    if text is None:
        return _ABSENT
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _ABSENT


def _no_constant(name: str) -> None:
    """Reject NaN and Infinity: they are not JSON, though Python's parser accepts them."""
    raise ValueError(name)


def _member(value: Any, key: str | None) -> Any:
    if isinstance(value, dict):
        return value.get(key, _ABSENT)
    if isinstance(value, list) and key is not None and key.isascii() and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return _ABSENT


def _float(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str | None:
    """Return a text that Arrow can hold: JSON may escape halves of a surrogate pair, which are not characters."""
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _json(value: Any) -> str | None:
    return None if value is _ABSENT else _text(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


_BY_KEY: Final[dict[str, tuple[Callable[[Any], Any], pa.DataType]]] = {
    "json_contains": (lambda value: value is not _ABSENT, pa.bool_()),
    "json_get_bool": (lambda value: value if isinstance(value, bool) else None, pa.bool_()),
    "json_get_float": (_float, pa.float64()),
    "json_get_int": (lambda value: value if type(value) is int and value in _INT64 else None, pa.int64()),
    "json_get_json": (_json, pa.string()),
    "json_get_str": (_text, pa.string()),
}
_WHOLE: Final[dict[str, tuple[Callable[[Any], Any], pa.DataType]]] = {
    "json_length": (lambda value: len(value) if isinstance(value, (dict, list)) else None, pa.uint64()),
}
