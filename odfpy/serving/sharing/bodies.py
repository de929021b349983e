"""Bodies and parameters of requests for tables (Delta Sharing protocol, "Request Body")."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.serving.sharing.errors import SharingError

Number = Annotated[int, Field(ge=0, le=2**63 - 1)]
MostFiles = Annotated[int, Field(ge=1, le=2**31 - 1)]
_Text = Annotated[str, Field(max_length=100)]
Sealed = Annotated[str, Field(max_length=8192)]
_OF_ONE_PAGE = {"pageToken", "maxFiles", "includeRefreshToken", "refreshToken", "idempotencyKey"}


class QueryBody(BaseModel):
    """The body of a query; unknown fields are ignored, as newer clients expect."""

    model_config = ConfigDict(extra="ignore")

    predicateHints: Annotated[list[Annotated[str, Field(max_length=10_000)]], Field(max_length=1000)] | None = None  # noqa: N815
    jsonPredicateHints: Annotated[str, Field(max_length=1_000_000)] | None = None  # noqa: N815
    limitHint: Number | None = None  # noqa: N815
    version: Number | None = None
    timestamp: _Text | None = None
    startingVersion: Number | None = None  # noqa: N815
    endingVersion: Number | None = None  # noqa: N815
    includeHistoricalProtocol: bool = False  # noqa: N815
    maxFiles: MostFiles | None = None  # noqa: N815
    pageToken: Sealed | None = None  # noqa: N815
    includeRefreshToken: bool = False  # noqa: N815
    refreshToken: Sealed | None = None  # noqa: N815
    idempotencyKey: Annotated[str, Field(max_length=1000)] | None = None  # noqa: N815

    def check(self) -> None:
        """Check that its fields are consistent.

        Raises:
            SharingError: 400, they do not.
        """
        given = [name for name in ("version", "timestamp", "startingVersion") if getattr(self, name) is not None]
        if len(given) > 1:
            raise SharingError(400, f"{' and '.join(given)} exclude each other")
        if self.endingVersion is not None and self.startingVersion is None:
            raise SharingError(400, "endingVersion needs startingVersion")
        if self.endingVersion is not None and self.endingVersion < (self.startingVersion or 0):
            raise SharingError(400, "endingVersion is before startingVersion")
        if self.refreshToken is not None and given:
            raise SharingError(400, f"refreshToken and {given[0]} exclude each other")
        if self.includeRefreshToken and given:
            raise SharingError(400, f"includeRefreshToken and {given[0]} exclude each other")
        if self.pageToken and (self.refreshToken or self.includeRefreshToken):
            raise SharingError(400, "A refresh token is given and had with the first page only")

    @property
    def has_hints(self) -> bool:
        """Return whether the client states conditions, by which it will drop rows."""
        return bool(self.predicateHints) or bool(self.jsonPredicateHints)

    def question(self) -> str:
        """Return the parameters that must be the same for all pages of a response.

        Spark requests a refresh token with the first page only.
        """
        return json.dumps(self.model_dump(exclude=_OF_ONE_PAGE, exclude_none=True), sort_keys=True)


async def query_body(request: Request) -> QueryBody:
    """Parse the body of a query, whatever its declared media type: the protocol omits the header.

    Raises:
        SharingError: 400, it is not a valid body.
    """
    text = await request.body()
    try:
        body = QueryBody.model_validate_json(text or b"{}")
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, problem['loc'])) or 'body'}: {problem['msg']}" for problem in error.errors())
        raise SharingError(400, "; ".join(problems)) from error
    body.check()
    return body


def instant(name: str, text: str) -> Timestamp:
    """Parse a time parameter.

    Args:
        name: name of the parameter.
        text: text in ISO 8601.

    Raises:
        SharingError: 400, it is invalid.
    """
    try:
        return Timestamp.parse(text)
    except InvalidValue as error:
        raise SharingError(400, f"{name} is not a time such as 2022-01-01T00:00:00Z: {text}") from error
