"""Texts with fields in braces: `{what}-{start:>14}`. A safe subset of Python's format strings.

`str.format` evaluates attributes and indexes of its arguments, and permits any width. Here a field is a name,
optionally followed by a colon and a fill, an alignment and a width. `{{` and `}}` are braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from string import Formatter
from typing import Final

from odfpy.errors import UsageError, did_you_mean

MAX_LENGTH: Final = 1000
"""Maximum characters of a text with fields."""

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIFICATION: Final = re.compile(r"(?:.?[<>^])?0?\d{0,3}(?:\.\d{1,3})?s?", re.DOTALL)


class FormatText:
    """A text with fields.

    Attributes:
        text: the given text.
        fields: names of the fields, in order.
    """

    def __init__(self, text: str) -> None:
        """
        Args:
            text: text with names in braces.

        Raises:
            UsageError: the text is invalid, or uses more than the values of fields.
        """
        self.text = text
        self._parts = tuple(_parts_of(text))
        self.fields = tuple(dict.fromkeys(name for _, name, _ in self._parts if name is not None))

    def require(self, known: Iterable[str], hint: str) -> None:
        """Check that there are values for all fields.

        Args:
            known: names of known fields.
            hint: list of the fields, for messages.

        Raises:
            UsageError: a field is unknown.
        """
        names = list(known)
        for field in self.fields:
            if field not in names:
                raise UsageError(
                    f"{self.text!r}: there is no field {{{field}}}", hint=did_you_mean(field, names, otherwise=hint)
                )

    def fill(self, values: Mapping[str, str]) -> str:
        """Replace the fields by values.

        Args:
            values: values by name, for all fields.
        """
        return "".join(
            literal + ("" if name is None else format(values[name], specification))
            for literal, name, specification in self._parts
        )


def _parts_of(text: str) -> Iterable[tuple[str, str | None, str]]:
    """Yield literals, each with the following field and its format."""
    if len(text) > MAX_LENGTH:
        raise UsageError(f"A text with fields has {len(text)} characters, {MAX_LENGTH} are allowed")
    try:
        parsed = list(Formatter().parse(text))
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}", hint="Write {name}, and {{ or }} for a brace itself.") from None
    for literal, name, specification, conversion in parsed:
        if name is not None:
            if not _NAME.fullmatch(name) or conversion is not None:
                shown = name if conversion is None else f"{name}!{conversion}"
                raise UsageError(
                    f"{text!r}: {{{shown}}} is not the name of a field",
                    hint="A field is a name in braces: no number, no attribute, no index, no conversion.",
                )
            if not _SPECIFICATION.fullmatch(specification or ""):
                raise UsageError(
                    f"{text!r}: {{{name}:{specification}}} is not a valid format",
                    hint="After the colon: a fill character, an alignment (<, > or ^), and a width up to 999.",
                )
        yield literal, name, specification or ""
