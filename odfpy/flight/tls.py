"""Certificates: whom a client believes, and by what it is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odfpy.errors import UsageError


@dataclass(frozen=True)
class Tls:
    """Options of encrypted connections; others do not look at them.

    Attributes:
        roots: certificates of the authorities that are believed, in PEM; those of the system if there are none.
        verify: False believes any server. Only for tests: whoever is in between reads everything.
        certificate: certificate of the client, in PEM, for servers that know clients by it.
        key: key of that certificate.
        host_name: by which the server's certificate is checked, if not by that of the location.
    """

    roots: bytes | None = None
    verify: bool = True
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    host_name: str | None = None

    def __post_init__(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise UsageError("A client certificate needs its key", hint="Give both, or none of them.")

    @classmethod
    def from_files(
        cls,
        *,
        roots: str | Path | None = None,
        verify: bool = True,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
        host_name: str | None = None,
    ) -> Tls:
        """Options whose certificates are in files.

        Args:
            roots: PEM file of authorities.
            verify: whether the server's certificate is checked.
            certificate: PEM file of the client's certificate.
            key: PEM file of its key.
            host_name: by which the server's certificate is checked.

        Raises:
            UsageError: a file cannot be read, or a certificate has no key.
        """
        return cls(_content(roots), verify, _content(certificate), _content(key), host_name)

    def arguments(self) -> dict[str, Any]:
        """Arguments of pyarrow's client."""
        return {
            "tls_root_certs": self.roots,
            "cert_chain": self.certificate,
            "private_key": self.key,
            "override_hostname": self.host_name,
            "disable_server_verification": not self.verify,
        }


def _content(path: str | Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read the certificate or key {path}: {error.strerror}") from error
