"""Names of shares, schemas, tables and principals (Delta Sharing protocol, "Names")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from odfpy.errors import InvalidValue

_MAX_LENGTH: Final = 255
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f/]")


def check_name(what: str, text: str, *, dots: bool = False) -> str:
    """Validate a name, and return it unchanged.

    Args:
        what: kind of the named object, for messages.
        text: the name.
        dots: whether the name may contain dots, as names of shares may.

    Raises:
        InvalidValue: the name is invalid.
    """
    if not text or len(text) > _MAX_LENGTH or _FORBIDDEN.search(text) or ("." in text and not dots):
        raise InvalidValue(
            f"Not a name of a {what}: {text!r}",
            hint=f"At most {_MAX_LENGTH} characters, without spaces, slashes{'' if dots else ', full stops'} and"
            " control characters.",
        )
    return text


def folded(name: str) -> str:
    """Return the case-folded form in which names are compared: the protocol ignores case."""
    return name.lower()


@dataclass(frozen=True, slots=True)
class SharePath:
    """The path of a share, schema or table: `sales`, `sales.eu`, `sales.eu.orders`.

    Attributes:
        share: name of the share.
        schema: name of the schema, None for the share itself.
        table: name of the table, None for the schema itself.
    """

    share: str
    schema: str | None = None
    table: str | None = None

    @classmethod
    def parse(cls, text: str) -> SharePath:
        """Parse a path with dots; if the name of the share has dots, with slashes: `sales.2024/eu/orders`.

        Raises:
            InvalidValue: the path is invalid.
        """
        parts = text.split("/") if "/" in text else text.split(".")
        if len(parts) > 3:
            raise InvalidValue(
                f"Not a share, schema or table: {text!r}", hint="Write SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE."
            )
        check_name("share", parts[0], dots=True)
        for what, part in zip(("schema", "table"), parts[1:], strict=False):
            check_name(what, part)
        return cls(*parts)

    @property
    def what(self) -> str:
        """The kind of the object: share, schema or table."""
        return "share" if self.schema is None else "schema" if self.table is None else "table"

    def __str__(self) -> str:
        separator = "/" if "." in self.share else "."
        return separator.join(part for part in (self.share, self.schema, self.table) if part is not None)
