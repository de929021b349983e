"""Parsers from text to typed values, exact and vectorized, one for each type (ODF specification, "Read").

A text either represents a value of the type or is invalid. No value is rounded or truncated, except for times finer
than a millisecond, which slices do not store. Whether a text is valid depends on that text alone.

| type | valid texts |
|---|---|
| Bool | `true`, `false`, in any case |
| integers | decimal digits with a sign, within range; no spaces, no fraction |
| floats | decimal or scientific notation within range, `NaN`, `inf`, `infinity`; rounded to the nearest value |
| Decimal | decimal or scientific notation that fits into the digits of the type |
| Date, Timestamp | the format of the step, and the day must exist; without a zone it is UTC |
| Time | `12:34`, `12:34:56`, `12:34:56.789` |
| Duration | an integer, counted in the unit of the type |
| Binary | hexadecimal digits |
"""

from __future__ import annotations

import binascii
import decimal
import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.data.timestamp import NANOS_PER_MILLI, NANOS_PER_SECOND
from odfpy.ingest.time_format import LEFT_OUT, MONTHS, TimeFormat, instant, time_format
from odfpy.values import dataclass

_SPECIAL_FLOATS = pa.array(["nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"])
_DECIMAL = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,9})?", re.ASCII)
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31, the limits of other tools
_PER_SECOND = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": NANOS_PER_SECOND}
_MAX_INT64 = 2**63 - 1

DECIMAL_DIGITS = {16: 38, 32: 76}
"""Digits that a decimal can have at most, by the bytes it is stored in."""


class CastFailed(Exception):
    """A value is invalid; `first_unfit` finds it."""


@dataclass(frozen=True, slots=True)
class TimeFormats:
    """Formats of dates and timestamps."""

    date: TimeFormat
    timestamp: TimeFormat

    @classmethod
    def of(cls, date: str | None, timestamp: str | None) -> TimeFormats:
        """Return the formats for the options of a read step; see `odfpy.ingest.time_format`.

        Raises:
            InvalidValue: a format is unknown.
        """
        return cls(time_format(date), time_format(timestamp))


DEFAULT_FORMATS = TimeFormats(time_format(None), time_format(None))


def parse_texts(texts: pa.Array, wanted: pa.DataType, formats: TimeFormats = DEFAULT_FORMATS) -> pa.Array:
    """Return the values of texts; nulls stay null.

    Args:
        texts: an array of strings.
        wanted: a type that is not nested.
        formats: formats of dates and timestamps.

    Raises:
        Unfit: at least one text is invalid.
    """
    parser = next((parse for applies, parse in _PARSERS if applies(wanted)), None)
    if parser is None:
        raise CastFailed
    try:
        return parser(texts, wanted, formats)
    except (pa.ArrowInvalid, ValueError, OverflowError) as error:
        raise CastFailed from error


def first_unfit(array: pa.Array, convert: Callable[[pa.Array], object]) -> int:
    """Return the index of the first value that a conversion rejects with `CastFailed`; it must reject the array."""
    low, high = 0, len(array)  # all values before `low` are valid, not all before `high` are
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(array.slice(low, middle - low))
        except CastFailed:
            high = middle
        else:
            low = middle
    return low


# --- Numbers ---------------------------------------------------------------------------------------------------------


def _bools(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    if (pc.min(pc.binary_length(texts)).as_py() or 4) < 4:  # Arrow also accepts "0" and "1"
        raise CastFailed
    return texts.cast(wanted)


def _integers(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    if _any(pc.starts_with(texts, "0x")) or _any(pc.starts_with(texts, "0X")):  # Arrow reads these as hexadecimal
        raise CastFailed
    try:
        return texts.cast(wanted)
    except pa.ArrowInvalid:
        return pc.replace_substring_regex(texts, r"^\+([0-9]+)$", r"\1").cast(wanted)


def _floats(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    values = texts.cast(wanted)
    special = pc.invert(pc.is_finite(values))
    if _any(special):  # Arrow returns infinity for numbers out of range
        words = pc.ascii_lower(texts.filter(special))
        if not pc.all(pc.is_in(words, _SPECIAL_FLOATS)).as_py():
            raise CastFailed
    return values


def _decimals(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    # Arrow reads beyond its table of powers if a text has more decimals than the widest decimal type, and then returns
    # wrong values or crashes (seen in 26.0). Such rare texts are read by Python.
    risky = pc.or_(
        pc.greater(pc.binary_length(texts), 38),
        pc.or_(pc.match_substring(texts, "e"), pc.match_substring(texts, "E")),
    )
    if not _any(risky):
        return _plain_decimals(texts, wanted)
    plain = _plain_decimals(pc.if_else(risky, pa.scalar(None, pa.string()), texts), wanted)
    careful = pa.array([_decimal(text, wanted) for text in texts.filter(risky).to_pylist()], wanted)
    return pc.replace_with_mask(plain, risky, careful)


def _plain_decimals(texts: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert texts of at most 38 characters without exponents."""
    room = wanted.precision - wanted.scale
    # A value with more digits than the storage has can wrap around to one that fits (seen in Arrow 26.0).
    can_wrap = (pc.max(pc.binary_length(texts)).as_py() or 0) + wanted.scale > DECIMAL_DIGITS[wanted.byte_width]
    if can_wrap and room >= 0 and _any(pc.match_substring_regex(texts, f"^[+-]?0*[1-9][0-9]{{{room}}}")):
        raise CastFailed
    return texts.cast(wanted)


def _decimal(text: str, wanted: pa.DataType) -> decimal.Decimal:
    if not _DECIMAL.fullmatch(text):
        raise CastFailed
    sign, numerals, exponent = decimal.Decimal(text).as_tuple()
    digits = "".join(map(str, numerals))
    shift = int(exponent) + wanted.scale if digits.strip("0") else 0
    if shift > wanted.precision or (shift < 0 and (len(digits) <= -shift or digits[shift:].strip("0"))):
        raise CastFailed
    digits = digits[:shift] if shift < 0 else digits + "0" * shift
    return decimal.Decimal((sign, tuple(map(int, digits)), -wanted.scale))


# --- Dates and times -------------------------------------------------------------------------------------------------


def _dates(texts: pa.Array, wanted: pa.DataType, formats: TimeFormats) -> pa.Array:
    if formats.date.is_rfc3339:
        return texts.cast(wanted)
    seconds, nanos, valid = _instants(texts, formats.date)
    days, of_day = np.divmod(seconds, 86_400)
    _check(valid & (of_day == 0) & (nanos == 0), texts)
    return _with_nulls(days.astype("int32"), texts).cast(wanted)


def _times(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    if (pc.min(pc.binary_length(texts)).as_py() or 5) < 5:  # Arrow also accepts hours alone
        raise CastFailed
    moments = pc.binary_join_element_wise("1970-01-01T", texts, "").cast(pa.timestamp("ns"))
    return moments.cast(pa.time64("ns")).cast(wanted)


def _timestamps(texts: pa.Array, wanted: pa.DataType, formats: TimeFormats) -> pa.Array:
    if formats.timestamp.is_rfc3339:
        for unit in (wanted.unit, "us", "ns"):
            for zone in ("UTC", None):  # Arrow requires all texts with a zone or all without
                try:
                    return retime(texts.cast(pa.timestamp(unit, zone)), wanted)
                except pa.ArrowInvalid:
                    pass
    seconds, nanos, valid = _instants(texts, formats.timestamp)
    per_second = _PER_SECOND[wanted.unit]
    valid &= np.abs(seconds) < _MAX_INT64 // per_second
    if wanted.unit == "s":
        valid &= nanos < NANOS_PER_MILLI
    _check(valid, texts)
    return _with_nulls(seconds * per_second + nanos // (NANOS_PER_SECOND // per_second), texts).cast(wanted)


def retime(moments: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Convert timestamps to another unit and zone, keeping the instants; without a zone they are UTC.

    Raises:
        ArrowInvalid: an instant is out of range, or would lose milliseconds.
    """
    naive = moments.cast(pa.timestamp(moments.type.unit))
    if _PER_SECOND[moments.type.unit] > max(_PER_SECOND[wanted.unit], 1000):
        unit = "microsecond" if wanted.unit == "us" else "millisecond"
        naive = pc.floor_temporal(naive, unit=unit)
    return naive.cast(pa.timestamp(wanted.unit)).cast(pa.int64()).cast(wanted)


def _instants(texts: pa.Array, time: TimeFormat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return seconds since 1970, nanoseconds, and whether the text has the format and is an existing time."""
    matched = pc.extract_regex(texts, f"^(?:{time.pattern})$")
    groups = dict(zip((field.name for field in matched.type), matched.flatten(), strict=True))
    numbers = {name: _numbers(group, LEFT_OUT.get(name, 0)) for name, group in groups.items() if name not in "bpfz"}
    if "b" in groups:
        names = pc.utf8_slice_codeunits(pc.ascii_lower(groups["b"]), 0, 3)
        numbers["m"] = _to_numpy(pc.index_in(names, pa.array(MONTHS))) + 1
    if "p" in groups:
        numbers["p"] = _to_numpy(pc.equal(pc.ascii_lower(groups["p"]), "pm").cast(pa.int64()))
    if "f" in groups:
        digits = pc.utf8_slice_codeunits(pc.utf8_rpad(groups["f"], 9, "0"), 0, 9)
        numbers["f"] = _numbers(digits)
    if "z" in groups:
        zone = pc.replace_substring_regex(groups["z"], r"^([+-][0-9]{2}):?([0-9]{2})?$", r"\1\2")
        zone = pc.if_else(pc.match_substring_regex(zone, "^[+-]"), zone, "+0000")
        sign = np.where(_to_numpy(pc.starts_with(zone, "-").cast(pa.int64())) == 1, -1, 1)
        numbers["zh"] = sign * _numbers(pc.utf8_slice_codeunits(zone, 1, 3))
        numbers["zm"] = sign * _numbers(pc.utf8_slice_codeunits(zone, 3, 5))
    seconds, nanos, valid = instant(numbers)
    matches = _to_numpy(matched.is_valid().cast(pa.int64())) == 1
    rows = len(texts)
    return (
        np.broadcast_to(np.asarray(seconds, "int64"), rows),
        np.broadcast_to(np.asarray(nanos, "int64"), rows),
        np.broadcast_to(np.asarray(valid, bool), rows) & matches,
    )


def _numbers(digits: pa.Array, left_out: int = 0) -> np.ndarray:
    """Convert digits to numbers; an unmatched group is empty, and becomes the number for omitted fields."""
    return _to_numpy(pc.if_else(pc.equal(pc.binary_length(digits), 0), str(left_out), digits).cast(pa.int64()))


def _to_numpy(numbers: pa.Array) -> np.ndarray:
    array: np.ndarray = numbers.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return array


def _check(valid: np.ndarray, texts: pa.Array) -> None:
    if not (valid | texts.is_null().to_numpy(zero_copy_only=False)).all():
        raise CastFailed


def _with_nulls(values: np.ndarray, texts: pa.Array) -> pa.Array:
    return pa.array(values, mask=texts.is_null().to_numpy(zero_copy_only=False))


def check_times(values: pa.Array) -> pa.Array:
    """Return values unchanged, after checking that dates are between the years 1 and 9999, and times within a day.

    Raises:
        Unfit: a value is out of range.
    """
    kind = values.type
    is_date, is_time = pa.types.is_date(kind), pa.types.is_time(kind)
    if not (is_date or is_time or pa.types.is_timestamp(kind)) or values.null_count == len(values):
        return values
    first, last = (0, 0) if is_time else (_FIRST_DAY, _LAST_DAY)
    per_day = 1 if is_date else 86_400 * _PER_SECOND[kind.unit]
    bounds = pc.min_max(counts(values)).as_py()
    if not first * per_day <= bounds["min"] <= bounds["max"] < (last + 1) * per_day:
        raise CastFailed
    return values


def counts(values: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """Return dates, times and timestamps as the integers that represent them."""
    return values.cast(pa.int32() if values.type.bit_width == 32 else pa.int64())


# --- Others ----------------------------------------------------------------------------------------------------------


def _durations(texts: pa.Array, wanted: pa.DataType, formats: TimeFormats) -> pa.Array:
    return _integers(texts, pa.int64(), formats).cast(wanted)


def _binaries(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    return pa.array([None if text is None else binascii.unhexlify(text) for text in texts.to_pylist()], wanted)


def _strings(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    return texts.cast(wanted)


def _nulls(texts: pa.Array, wanted: pa.DataType, _: TimeFormats) -> pa.Array:
    if texts.null_count < len(texts):
        raise CastFailed
    return pa.nulls(len(texts), wanted)


def _any(flags: pa.Array) -> bool:
    return bool(pc.any(flags).as_py())


_Parser = Callable[[pa.Array, pa.DataType, TimeFormats], pa.Array]
_PARSERS: tuple[tuple[Callable[[pa.DataType], bool], _Parser], ...] = (
    (pa.types.is_string, _strings),
    (pa.types.is_integer, _integers),
    (pa.types.is_timestamp, lambda *args: check_times(_timestamps(*args))),
    (pa.types.is_floating, _floats),
    (pa.types.is_decimal, _decimals),
    (pa.types.is_boolean, _bools),
    (pa.types.is_date, lambda *args: check_times(_dates(*args))),
    (pa.types.is_time, _times),
    (pa.types.is_duration, _durations),
    (lambda wanted: pa.types.is_binary(wanted) or pa.types.is_fixed_size_binary(wanted), _binaries),
    (pa.types.is_null, _nulls),
)
