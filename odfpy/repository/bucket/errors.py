"""Classification of the errors of object stores.

Each library has its own errors, whose texts may contain keys and signed URLs: only their codes are ever shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from odfpy.errors import TransferError


class StoreUnreachable(TransferError, code="E610"):
    """An object store does not answer."""


class StoreRefuses(TransferError, code="E611"):
    """An object store rejects the credentials, or does not permit the request."""


class BucketNotFound(TransferError, code="E612"):
    """An object store does not have the bucket."""


class Conflict(Exception):
    """The condition of a write is not met: another writer was first."""


class NoSuchBucket(Exception):
    """A bucket does not exist; raised by clients whose library does not report that."""


class Cause(Enum):
    """The reason why a request has failed."""

    NO_OBJECT = "there is no such object"
    NO_BUCKET = "there is no such bucket"
    CONFLICT = "the object does not meet the condition"
    PAST_END = "the range begins after the end of the object"
    NO_CREDENTIALS = "no credentials were found"
    DENIED = "access denied"
    UNSUPPORTED = "the store does not support that"
    PASSING = "a retry may succeed"
    UNREACHABLE = "no answer"
    OTHER = "another error"


# Codes of the stores come first, then exception classes of their libraries, then HTTP statuses.
_WORDS = {
    "NoSuchBucket": Cause.NO_BUCKET,
    "InvalidBucketName": Cause.NO_BUCKET,
    "ContainerNotFound": Cause.NO_BUCKET,
    "InvalidResourceName": Cause.NO_BUCKET,
    "NoSuchKey": Cause.NO_OBJECT,
    "BlobNotFound": Cause.NO_OBJECT,
    "PreconditionFailed": Cause.CONFLICT,
    "ConditionalRequestConflict": Cause.CONFLICT,
    "ConditionNotMet": Cause.CONFLICT,
    "BlobAlreadyExists": Cause.CONFLICT,
    "InvalidRange": Cause.PAST_END,
    "NotImplemented": Cause.UNSUPPORTED,
    "NoSuchUpload": Cause.PASSING,  # the upload was ended by another client; a new one can begin
    "SlowDown": Cause.PASSING,
    "InternalError": Cause.PASSING,
    "ServerBusy": Cause.PASSING,
    "NoCredentialsError": Cause.NO_CREDENTIALS,
    "PartialCredentialsError": Cause.NO_CREDENTIALS,
    "DefaultCredentialsError": Cause.NO_CREDENTIALS,
    "CredentialUnavailableError": Cause.NO_CREDENTIALS,
    "AccessDenied": Cause.DENIED,
    "InvalidAccessKeyId": Cause.DENIED,
    "SignatureDoesNotMatch": Cause.DENIED,
    "InvalidToken": Cause.DENIED,
    "ExpiredToken": Cause.DENIED,
    "ClientAuthenticationError": Cause.DENIED,
    "RefreshError": Cause.DENIED,
    "EndpointConnectionError": Cause.UNREACHABLE,
    "ConnectTimeoutError": Cause.UNREACHABLE,
    "ProxyConnectionError": Cause.UNREACHABLE,
    "SSLError": Cause.UNREACHABLE,
    "ClientConnectorError": Cause.UNREACHABLE,
    "ClientConnectorCertificateError": Cause.UNREACHABLE,
    "ClientConnectorDNSError": Cause.UNREACHABLE,
    "ServiceRequestError": Cause.UNREACHABLE,
    "ConnectionClosedError": Cause.PASSING,
    "ConnectionResetError": Cause.PASSING,
    "ClientPayloadError": Cause.PASSING,
    "IncompleteRead": Cause.PASSING,
    "IncompleteReadError": Cause.PASSING,
    "ReadTimeoutError": Cause.PASSING,
    "ServerDisconnectedError": Cause.PASSING,
    "ServiceResponseError": Cause.PASSING,
    "TimeoutError": Cause.PASSING,
    "FileNotFoundError": Cause.NO_OBJECT,
    "FileExistsError": Cause.CONFLICT,
    "PermissionError": Cause.DENIED,
    "401": Cause.DENIED,
    "403": Cause.DENIED,
    "404": Cause.NO_OBJECT,
    "409": Cause.CONFLICT,
    "412": Cause.CONFLICT,
    "416": Cause.PAST_END,
    "500": Cause.PASSING,
    "501": Cause.UNSUPPORTED,
    "502": Cause.PASSING,
    "503": Cause.PASSING,
    "504": Cause.PASSING,
}


def cause_of(error: BaseException) -> tuple[Cause, str]:
    """Return the cause of a failed request, and an error code that may be shown."""
    words = [word for each in _chain(error) for word in _words(each)]
    found = {word: _WORDS[word] for word in words if word in _WORDS}
    best = min(found, key=list(_WORDS).index, default=None)
    return (Cause.OTHER, words[0]) if best is None else (found[best], best)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _words(error: BaseException) -> Iterator[str]:
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore
        yield str(response.get("Error", {}).get("Code"))
        yield str(response.get("ResponseMetadata", {}).get("HTTPStatusCode"))
    for attribute in ("error_code", "status_code", "code"):  # Azure; Google
        value = getattr(error, attribute, None)
        if value is not None:
            yield str(getattr(value, "value", value))
    if type(error) is OSError and str(error).startswith("Forbidden"):  # gcsfs
        yield "403"
    yield from (cls.__name__ for cls in type(error).__mro__[:-3])
    yield type(error).__name__
