"""Declarations of settings, and the validation of values.

Declarations are plain classes, so that defaults take no time when a command starts. Values are validated by pydantic,
which is only imported if there is a value: in a file, or from `odf config set`. pydantic-core suffices for single
values, and its import takes a third of the time of pydantic's models (docs/adr/0032-settings.md).
"""

from __future__ import annotations

from functools import cached_property
from inspect import get_annotations
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Union, get_args, get_origin

from odfpy.data.amounts import parse_size
from odfpy.values import dataclass

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class Help:
    """The help text of a setting.

    Attributes:
        sentence: one line, without a full stop.
        specification: the related section of the ODF specification, None for settings of odfpy itself.
        is_secret: whether values may contain secrets, so that they are only shown if explicitly requested.
    """

    sentence: str
    specification: str | None = None
    is_secret: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """The syntax of a text value.

    Attributes:
        pattern: regular expression for the complete text.
        words: description for users.
    """

    pattern: str
    words: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The minimum of numbers, and their maximum if there is one."""

    least: int
    most: int | None = None


@dataclass(frozen=True, slots=True)
class SizeBounds:
    """The minimum and maximum of sizes, in bytes."""

    least: int
    most: int

    def allow(self, size: str) -> bool:
        """Return whether a size is within the bounds."""
        return self.least <= parse_size(size) <= self.most


class Section:
    """A group of settings, with their current values.

    Subclasses declare each setting as an attribute: name in snake case, `Annotated` with `Help` and optional
    constraints, and default. Their order is that of `odf config list`.
    """

    NAME: ClassVar[str]

    def __init__(self, **values: Value | None) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self.NAME}.{name} is set in a file, or by `odf config set`")


@dataclass(frozen=True)
class Setting:
    """A declared setting.

    Attributes:
        key: dotted name, as in `engine.idleTimeout`.
        attribute: name of its attribute in the section.
        type: type of its values, without None.
        default: default value, None if there is none.
        help: help text.
        marks: further constraints: `Form`, `Bounds`, `SizeBounds`.
    """

    key: str
    attribute: str
    type: Any
    default: Value | None
    help: Help
    marks: tuple[Form | Bounds | SizeBounds, ...] = ()

    @property
    def description(self) -> str:
        """Return the help text, on one line."""
        return self.help.sentence

    @property
    def variable(self) -> str:
        """Return the name of its environment variable, as in `ODF_ENGINE_IDLE_TIMEOUT`."""
        return f"ODF_{self.key.partition('.')[0]}_{self.attribute}".upper()

    @property
    def values(self) -> str:
        """Describe the accepted values."""
        for mark in self.marks:
            if isinstance(mark, Form):
                return mark.words
            if isinstance(mark, Bounds) and mark.least:
                most = "" if mark.most is None else f" and at most {mark.most}"
                return f"a whole number, at least {mark.least}{most}"
        if get_origin(self.type) is Literal:
            *others, last = get_args(self.type)
            return f"{', '.join(others)} or {last}"
        return {str: "text", int: "a whole number", bool: "true or false"}[self.type]

    def accepts(self, value: object) -> bool:
        """Return whether a value is valid."""
        bounds = [mark for mark in self.marks if isinstance(mark, SizeBounds)]
        return self._validator.isinstance_python(value) and all(bound.allow(str(value)) for bound in bounds)

    def read(self, text: str) -> Value:
        """Parse a text from the command line; the result may still be invalid."""
        if self.type is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self.type is int and text.isascii() and text.isdecimal():
            return int(text)
        return text

    @cached_property
    def _validator(self) -> SchemaValidator:
        from pydantic_core import SchemaValidator, core_schema

        # Strict: the text "1" is not a number, and the number 1 is not a boolean.
        if get_origin(self.type) is Literal:
            return SchemaValidator(core_schema.literal_schema(list(get_args(self.type))))
        if self.type is bool:
            return SchemaValidator(core_schema.bool_schema(strict=True))
        if self.type is int:
            bounds = next((mark for mark in self.marks if isinstance(mark, Bounds)), None)
            least, most = (None, None) if bounds is None else (bounds.least, bounds.most)
            return SchemaValidator(core_schema.int_schema(ge=least, le=most, strict=True))
        pattern = next((rf"\A(?:{mark.pattern})\Z" for mark in self.marks if isinstance(mark, Form)), None)
        return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="python-re", strict=True))


def settings_in(section: type[Section]) -> tuple[Setting, ...]:
    """Return the settings that a section declares, in order."""
    return tuple(_setting(section, name, declared) for name, declared in get_annotations(section).items())


def _setting(section: type[Section], name: str, declared: Any) -> Setting:
    kind, marks = _unwrapped(declared)
    (described,) = (mark for mark in marks if isinstance(mark, Help))
    rules = tuple(mark for mark in marks if isinstance(mark, Form | Bounds | SizeBounds))
    return Setting(f"{section.NAME}.{_camel(name)}", name, kind, getattr(section, name), described, rules)


def _unwrapped(declared: Any) -> tuple[Any, list[Any]]:
    """Split an annotation into the type of the values, without None, and all annotations."""
    if get_origin(declared) is Annotated:
        kind, marks = _unwrapped(declared.__origin__)
        return kind, [*marks, *declared.__metadata__]
    if get_origin(declared) in (Union, UnionType):
        (declared,) = (kind for kind in get_args(declared) if kind is not NoneType)
        return _unwrapped(declared)
    return declared, []


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
