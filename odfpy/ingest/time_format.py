"""Formats of dates and times in text (`dateFormat`, `timestampFormat` of read steps and of event time sources).

`rfc3339`, the default, is `2024-03-01T12:00:00.123Z` with variations: a space instead of the `T`; no zone, which means
UTC; no seconds, minutes or time at all. Manifests write other formats in two notations; both are supported:
- with percent signs, as of strftime: `%d.%m.%Y %H:%M` (the reference's own, and Python's);
- with letters, as of Java's SimpleDateFormat and Spark: `dd.MM.yyyy HH:mm`, text in single quotes, `[ ]` optional.

A field of one or two digits accepts either, unless digits follow it directly. A month or day that the format omits is
the first. Two-digit years lie between 1969 and 2068. Names are English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from odfpy.data.timestamp import NANOS_PER_SECOND, SECONDS_PER_DAY, Timestamp
from odfpy.errors import InvalidValue
from odfpy.values import dataclass

RFC3339 = "rfc3339"

_RFC3339_PATTERN = (
    r"(?P<Y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)"
    r"(?:[Tt ](?P<H>\d\d)(?::(?P<M>\d\d)(?::(?P<S>\d\d)(?:\.(?P<f>\d+))?)?)?"
    r" ?(?P<z>[Zz]|[+-]\d\d(?::?\d\d)?)?)?"
)

# Fields by letter, as of strftime. In fields of one or two digits, {n} is replaced depending on the next field.
_FIELDS = {
    "Y": r"\d{4}",
    "y": r"\d\d",
    "m": r"\d{n}",
    "b": r"(?i:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)",
    "d": r"\d{n}",
    "j": r"\d{1,3}",
    "H": r"\d{n}",
    "I": r"\d{n}",
    "p": r"[AaPp][Mm]",
    "M": r"\d{n}",
    "S": r"\d{n}",
    "f": r"\d+",
    "z": r"[Zz]|UTC|GMT|[+-]\d\d(?::?\d\d)?",
    "s": r"-?\d{1,12}",
}
_DIGITS = frozenset("YymdjHIMSfs")
_WEEKDAY = "[A-Za-z]+"

_STRFTIME = {
    "Y": "Y", "y": "y", "m": "m", "b": "b", "B": "b", "h": "b", "d": "d", "e": "d", "j": "j", "H": "H", "k": "H",
    "I": "I", "l": "I", "p": "p", "P": "p", "M": "M", "S": "S", "f": "f", "z": "z", ":z": "z", "#z": "z", "Z": "z",
    "s": "s",
}  # fmt: skip
_STRFTIME_SHORTHAND = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y", "n": "\n", "t": "\t"}
_STRFTIME_DIRECTIVE = re.compile(r"%(?P<modifier>[-_0])?(?P<fraction>\.?[369]?f)|%[-_0]?(?P<letter>[:#]?[A-Za-z%+])")
_JAVA = {
    "y": "Y", "u": "Y", "M": "m", "L": "m", "d": "d", "D": "j", "H": "H", "h": "I", "a": "p", "m": "M", "s": "S",
    "S": "f", "X": "z", "x": "z", "Z": "z", "z": "z",
}  # fmt: skip
_BRACKETS = (("regex", "(?:"), ("regex", ")?"))
_JAVA_TOKEN = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>([A-Za-z])\3*)|(?P<bracket>[\[\]])|(?P<other>.)", re.DOTALL
)

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
"""Lower-case abbreviations of the months' names."""


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """A compiled format.

    Attributes:
        text: the format in its original notation.
        pattern: a regular expression that both Python and RE2 support, with one group per field.
    """

    text: str
    pattern: str

    @property
    def is_rfc3339(self) -> bool:
        """True if this is the default format."""
        return self.pattern == _RFC3339_PATTERN

    @property
    def fields(self) -> frozenset[str]:
        """Letters of the fields that the pattern captures."""
        return frozenset(re.compile(self.pattern).groupindex)

    def parse(self, text: str) -> Timestamp:
        """Return the time of a text; without a zone it is in UTC.

        Raises:
            InvalidValue: the text does not match the format, or is not an existing time.
        """
        match = re.fullmatch(self.pattern, text, re.ASCII)
        if match is None:
            raise InvalidValue(f"Not a time in the format {self.text}: {text!r}")
        try:
            seconds, nanos, valid = instant(_to_numbers({k: v for k, v in match.groupdict().items() if v}))
            if not valid:
                raise InvalidValue(f"No such time: {text!r}")
            return Timestamp(seconds * NANOS_PER_SECOND + nanos)
        except (ValueError, IndexError) as error:
            raise InvalidValue(f"No such time: {text!r}") from error


@lru_cache(maxsize=256)
def time_format(text: str | None) -> TimeFormat:
    """Compile a format; None is `rfc3339`.

    Raises:
        InvalidValue: the format has an unknown directive, the same field twice, or no field at all.
    """
    if text is None or text.lower() in (RFC3339, "iso8601"):
        return TimeFormat(RFC3339, _RFC3339_PATTERN)
    tokens = list(_strftime_tokens(text) if "%" in text else _java_tokens(text))
    fields = [value for kind, value in tokens if kind == "field"]
    repeated = {field for field in fields if fields.count(field) > 1}
    if repeated or not fields:
        raise InvalidValue(
            f"The time format {text!r} " + ("has a field twice" if repeated else "has no fields"),
            hint="Write it as strftime does, like %Y-%m-%d %H:%M:%S, or as Java does, like yyyy-MM-dd HH:mm:ss.",
        )
    return TimeFormat(text, "".join(_regex(tokens)))


# --- From format to regular expression -------------------------------------------------------------------------------
# Tokens are ("field", letter), ("text", literal) or ("regex", piece of a regular expression).


def _strftime_tokens(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        if text[at] != "%":
            yield "text", text[at]
            at += 1
            continue
        match = _STRFTIME_DIRECTIVE.match(text, at)
        letter = match and (match["letter"] or match["fraction"])
        if match is None or letter is None:
            raise _unknown(text, text[at : at + 2])
        at = match.end()
        if match["fraction"]:
            yield from _fraction(match["fraction"])
        elif letter in _STRFTIME_SHORTHAND:
            yield from _strftime_tokens(_STRFTIME_SHORTHAND[letter])
        elif letter in _STRFTIME:
            if letter in "ekl":  # padded with a space
                yield "regex", " ?"
            yield "field", _STRFTIME[letter]
        elif letter in "aA":
            yield "regex", _WEEKDAY
        elif letter == "%":
            yield "text", "%"
        else:
            raise _unknown(text, f"%{letter}")


def _fraction(directive: str) -> Iterator[tuple[str, str]]:
    """Yield the tokens of `%f`, `%3f`, and of `%.f` and `%.3f`, which have an optional point."""
    if directive.startswith("."):
        yield "regex", r"(?:\."
        yield "field", "f"
        yield "regex", ")?"
    else:
        yield "field", "f"


def _java_tokens(text: str) -> Iterator[tuple[str, str]]:
    depth = 0
    for match in _JAVA_TOKEN.finditer(text):
        if match["quoted"] is not None:
            yield "text", match["quoted"].replace("''", "'") or "'"
        elif match["bracket"]:
            depth += 1 if match["bracket"] == "[" else -1
            yield "regex", "(?:" if match["bracket"] == "[" else ")?"
        elif match["letters"]:
            yield _java_field(text, match["letters"])
        else:
            yield "text", match["other"]
        if depth < 0:
            break
    if depth:
        raise InvalidValue(f"The time format {text!r} has an unbalanced bracket")


def _java_field(text: str, letters: str) -> tuple[str, str]:
    letter, count = letters[0], len(letters)
    if letter == "E":
        return "regex", _WEEKDAY
    if letter in "ML" and count > 2:
        return "field", "b"
    if letter in "yu" and count == 2:
        return "field", "y"
    if letter not in _JAVA:
        raise _unknown(text, letters)
    return "field", _JAVA[letter]


def _regex(tokens: list[tuple[str, str]]) -> Iterator[str]:
    for i, (kind, value) in enumerate(tokens):
        if kind == "text":
            yield re.escape(value)
        elif kind == "regex":
            yield value
        else:
            digits = "{2}" if _is_digits(tokens[:i][::-1]) or _is_digits(tokens[i + 1 :]) else "{1,2}"
            yield f"(?P<{value}>{_FIELDS[value].replace('{n}', digits)})"


def _is_digits(tokens: list[tuple[str, str]]) -> bool:
    """Return whether the first token other than a bracket is a field of digits."""
    kind, value = next((token for token in tokens if token not in _BRACKETS), ("", ""))
    return kind == "field" and value in _DIGITS


def _unknown(text: str, directive: str) -> InvalidValue:
    return InvalidValue(
        f"The time format {text!r} has {directive!r}, which is not known",
        hint="Put text between single quotes in Java's notation; strftime's has percent signs.",
    )


# --- From fields to instants -----------------------------------------------------------------------------------------


def _to_numbers(fields: Mapping[str, str]) -> dict[str, int]:
    """Convert the fields of one time to numbers, the arguments of `instant`."""
    numbers = {name: int(value) for name, value in fields.items() if name not in "bpfz"}
    if "b" in fields:
        numbers["m"] = MONTHS.index(fields["b"][:3].lower()) + 1
    if "p" in fields:
        numbers["p"] = int(fields["p"].lower() == "pm")
    if "f" in fields:
        numbers["f"] = int(fields["f"][:9].ljust(9, "0"))
    if "z" in fields and fields["z"][0] in "+-":
        digits = fields["z"][1:].replace(":", "").ljust(4, "0")
        sign = -1 if fields["z"][0] == "-" else 1
        numbers |= {"zh": sign * int(digits[:2]), "zm": sign * int(digits[2:])}
    return numbers


LEFT_OUT: Final = {"Y": 1970, "y": 70, "m": 1, "d": 1, "j": -1, "I": 12}
"""Numbers for omitted fields in arrays of numbers, for optional parts of formats; 0 for other fields."""


def instant(n: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return seconds since 1970, nanoseconds, and whether the time exists.

    Args:
        n: numbers, or numpy arrays of int64, by letter: `Y` year or `y` its last two digits, `m`, `d`, `j` day of the
            year, `H` or `I` with `p` (1 for pm), `M`, `S`, `f` nanoseconds, `zh` and `zm` zone, or `s` seconds instead
            of all others. Missing fields are the first or zero; in arrays, `LEFT_OUT` marks fields that are missing
            in single times.
    """
    nanos = n.get("f", 0)
    if "s" in n:
        return n["s"], nanos, n["s"] == n["s"]
    year = n["Y"] if "Y" in n else 1970 if "y" not in n else n["y"] + 1900 + 100 * (n["y"] < 69)
    month, day = n.get("m", 1), n.get("d", 1)
    minute, second = n.get("M", 0), n.get("S", 0)
    valid = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1) & (minute <= 59) & (second <= 59)
    if "I" in n:
        hour = n["I"] % 12 + 12 * n.get("p", 0)
        valid = valid & (n["I"] >= 1) & (n["I"] <= 12)
    else:
        hour = n.get("H", 0)
        valid = valid & (hour <= 23)
    first = _days(year, month, 1)
    days = first + day - 1
    valid = valid & (days < _days(year + month // 12, month % 12 + 1, 1))
    if "j" in n:
        is_left_out, of_year = n["j"] == LEFT_OUT["j"], _days(year, 1, 1) + n["j"] - 1
        valid = valid & (is_left_out | (n["j"] >= 1) & (of_year < _days(year + 1, 1, 1)))
        days = is_left_out * days + (1 - is_left_out) * of_year
    zone_hours, zone_minutes = n.get("zh", 0), n.get("zm", 0)
    valid = valid & (abs(zone_hours) <= 23) & (abs(zone_minutes) <= 59)
    seconds = days * SECONDS_PER_DAY + (hour - zone_hours) * 3600 + (minute - zone_minutes) * 60 + second
    return seconds, nanos, valid


def _days(year: Any, month: Any, day: Any) -> Any:
    """Return days since 1970 in the proleptic Gregorian calendar; counts from March, so that leap days come last."""
    shifted = year - (month <= 2)
    of_year = (153 * (month + 12 * (month <= 2) - 3) + 2) // 5 + day - 1
    return shifted * 365 + shifted // 4 - shifted // 100 + shifted // 400 + of_year - 719468
