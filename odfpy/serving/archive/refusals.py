"""Error responses of archives in the form of datalake's API: `{"code": ..., "message": ...}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from odfpy.archive.errors import InvalidCursor, NoSuchFile
from odfpy.serving.http.errors import Refused

BAD_REQUEST = 400
NOT_FOUND = 404


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Refused:
    """Create an error response.

    Args:
        status: HTTP status.
        code: machine-readable code, such as `NoArgs`.
        message: human-readable message.
        headers: additional headers of the response.
    """
    return Refused(status, message, headers, {"code": code})


def bad_request(code: str, message: str) -> Refused:
    """Create the error for invalid parameters."""
    return refusal(BAD_REQUEST, code, message)


def no_archive(message: str) -> Refused:
    """Create the error for a missing archive, or for one that the caller may not read."""
    return refusal(NOT_FOUND, "NoSuchArchive", message)


@contextmanager
def as_refusals() -> Iterator[None]:
    """Translate errors of an archive into error responses."""
    try:
        yield
    except NoSuchFile as error:
        # Clients of datalake only know this code; odfpy's clients look for the class of the error, to suggest a remedy.
        raise Refused(NOT_FOUND, error.message, None, {"code": "NoSuchFile", "error": error.code}) from error
    except InvalidCursor as error:
        raise bad_request("InvalidCursor", error.message) from error
