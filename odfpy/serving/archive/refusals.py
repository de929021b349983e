"""Refusals of archives, as datalake's API words them: `{"code": ..., "message": ...}`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from odfpy.archive.errors import InvalidCursor, NoSuchFile
from odfpy.serving.http.errors import Refused

BAD_REQUEST = 400
NOT_FOUND = 404


def refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Refused:
    """A refusal.

    Args:
        status: of HTTP.
        code: for programs, such as `NoArgs`.
        message: for people.
        headers: further headers of the answer.
    """
    return Refused(status, message, headers, {"code": code})


def bad_request(code: str, message: str) -> Refused:
    """An invalid question."""
    return refusal(BAD_REQUEST, code, message)


def no_archive(message: str) -> Refused:
    """There is no archive, or none for the caller."""
    return refusal(NOT_FOUND, "NoSuchArchive", message)


@contextmanager
def as_refusals() -> Iterator[None]:
    """Turn errors of an archive into refusals."""
    try:
        yield
    except NoSuchFile as error:
        # Clients of datalake know only this code; ours look for the class of the error, to say what to try.
        raise Refused(NOT_FOUND, error.message, None, {"code": "NoSuchFile", "error": error.code}) from error
    except InvalidCursor as error:
        raise bad_request("InvalidCursor", error.message) from error
