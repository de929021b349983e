"""Relay and credentials as sent to Spark's workers: as bytes, so that workers need no files."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final

from odfpy.errors import UsageError
from odfpy.federation.errors import InvalidCertificate
from odfpy.federation.execution.user import User
from odfpy.federation.relay.flight import LOCATION, Connections
from odfpy.federation.relay.requesters import Credentials

_USERS_IN_A_PROCESS: Final = 8


@dataclass(frozen=True)
class Access:
    """A relay, and the credentials to query it with. Its `repr` only shows the relay's location.

    Attributes:
        relay: where it is: `grpc+tls://HOST:PORT`.
        certificates: certificates of the user, in PEM form.
        key: private key of the user's certificate.
        authorities: authorities of the relays, in PEM form.
    """

    relay: str
    certificates: bytes = field(repr=False)
    key: bytes = field(repr=False)
    authorities: bytes = field(repr=False)

    @classmethod
    def from_files(cls, relay: str, certificate: str, key: str, authorities: str) -> Access:
        """Load the access from files of certificates.

        Args:
            relay: where it is.
            certificate: PEM file of the user's certificate.
            key: PEM file of its key.
            authorities: PEM file of the authorities of the relays.

        Raises:
            UsageError: the location is not that of a relay.
            InvalidCertificate: a file cannot be read, or they do not match.
        """
        if not LOCATION.fullmatch(relay):
            raise UsageError(f"Not the URL of a relay: {relay}", hint="Write grpc+tls://HOST:PORT.")
        access = cls(relay, _content("cert", certificate), _content("key", key), _content("ca", authorities))
        Credentials(access.certificates, access.key)
        return access

    @property
    def user(self) -> User:
        """Return the relay client, whose connections are shared by all that use these credentials in this process."""
        return _user(self)


@lru_cache(_USERS_IN_A_PROCESS)
def _user(access: Access) -> User:
    credentials = Credentials(access.certificates, access.key)
    return User(access.relay, credentials, Connections(credentials, access.authorities))


def _content(option: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InvalidCertificate(
            f"Cannot read {path}: {error.strerror}",
            hint=f"The option {option} is a PEM file on the machine where Spark plans.",
        ) from error
