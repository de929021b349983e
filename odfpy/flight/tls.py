"""TLS options of a client: trusted authorities, and the client's certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from odfpy.errors import UsageError


@dataclass(frozen=True)
class Tls:
    """Options of encrypted connections; ignored by others.

    Attributes:
        roots: trusted certificate authorities, in PEM; those of the system if empty.
        verify: False disables verification. Only for tests: anyone in between can read everything.
        certificate: client certificate, in PEM.
        key: private key of that certificate.
        host_name: host name to verify the server's certificate against, if it differs from that of the location.
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
        """Load options with certificates from files.

        Args:
            roots: PEM file of trusted authorities.
            verify: whether to verify the server's certificate.
            certificate: PEM file of the client certificate.
            key: PEM file of its key.
            host_name: host name to verify the server's certificate against.

        Raises:
            UsageError: a file cannot be read, or a certificate has no key.
        """
        return cls(_content(roots), verify, _content(certificate), _content(key), host_name)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments for pyarrow's client."""
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
