"""Common parts of admin requests: texts, names in paths, and pagination."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Path, Query, Response
from pydantic import AfterValidator, ConfigDict, Field

from odfpy.data.duration import DURATION_FORM, Duration
from odfpy.serving.rest.datasets import TOTAL
from odfpy.serving.rest.models import RefusalModel, answers

T = TypeVar("T")

_MAX_NAME_LENGTH: Final = 255
_MAX_OFFSET: Final = 10_000_000
_MAX_NUMBER: Final = 2**31 - 1


def _checked(text: str) -> str:
    """Check that a text is valid in every database: no lone surrogates, which JSON permits, and no NUL."""
    if "\0" in text or any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("this is not text")
    return text


IsText = AfterValidator(_checked)
Name = Annotated[str, Field(max_length=_MAX_NAME_LENGTH), IsText]
"""A name in a body."""

Line = Annotated[str, Field(max_length=1000), IsText]
Long = Annotated[str, Field(max_length=20_000), IsText]

ShareName = Annotated[str, Path(max_length=_MAX_NAME_LENGTH, description="Name of the share."), IsText]
SchemaName = Annotated[str, Path(max_length=_MAX_NAME_LENGTH, description="Name of the schema."), IsText]
TableName = Annotated[str, Path(max_length=_MAX_NAME_LENGTH, description="Name of the table."), IsText]
PrincipalName = Annotated[
    str, Path(max_length=_MAX_NAME_LENGTH, description="Name of the recipient, user or group."), IsText
]
Number = Annotated[int, Path(ge=0, le=_MAX_NUMBER, description="Number, as in lists.")]

Lifetime = Annotated[str, Field(max_length=100, description=f"{DURATION_FORM[1].capitalize()}.")]


def lifetime(text: str | None) -> Duration | None:
    """Parse a duration; None for none.

    Raises:
        InvalidValue: the text is invalid.
    """
    return None if text is None else Duration.parse(text)


@dataclass(frozen=True, slots=True)
class Page:
    """The requested part of a list.

    Attributes:
        search: text that items must contain, in lower case.
        limit: maximum number of items.
        offset: how many to leave out first.
    """

    search: str
    limit: int
    offset: int

    def of(self, response: Response, items: Sequence[T], speaks: Callable[[T], Sequence[str | None]]) -> Sequence[T]:
        """Return the items of the requested page; a header has the total count.

        Args:
            response: response that receives the header.
            items: the complete list, in order.
            speaks: returns the texts of an item that are searched.
        """
        if self.search:
            items = [item for item in items if any(self.search in (text or "").lower() for text in speaks(item))]
        response.headers[TOTAL] = str(len(items))
        return items[self.offset : self.offset + self.limit]


def _page(
    search: Annotated[str, Query(max_length=200, description="Text that an item contains, case-insensitive.")] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of items.")] = 100,
    offset: Annotated[int, Query(ge=0, le=_MAX_OFFSET, description="Number of items to skip.")] = 0,
) -> Page:
    return Page(search.lower(), limit, offset)


APage = Annotated[Page, Depends(_page)]

PAGED: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": {TOTAL: {"description": "Number of items on all pages.", "schema": {"type": "integer"}}}}
}
"""The header of lists, for the OpenAPI."""


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return error responses of admin endpoints for the OpenAPI: the common ones, and additional ones."""
    why = {
        400: "The request is invalid; the message has the reason.",
        404: "The object does not exist.",
        409: "The object already exists, or was changed concurrently.",
    }
    own: dict[int | str, dict[str, Any]] = {
        status: {"description": why[status], "model": RefusalModel} for status in statuses if status in why
    }
    admins = {"description": "Requires an admin of the workspace.", "model": RefusalModel}
    return {**answers(401, 422, *(status for status in statuses if status not in why)), 403: admins, **own}


def like(*examples: Any) -> ConfigDict:
    """Return the configuration of a model that rejects unknown fields, with examples."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": list(examples)})
