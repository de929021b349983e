"""TLS certificates of servers."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from odfpy.errors import OdfError, UsageError


class CannotServe(OdfError, code="E631"):
    """The server cannot listen on its address, or its certificate is unusable."""


@dataclass(frozen=True, slots=True)
class Tls:
    """The TLS files of a server, all PEM.

    Attributes:
        certificate: its certificate, and those up to the authority.
        key: the key of the certificate.
        authorities: authorities that must have issued clients' certificates; None if clients need none.
    """

    certificate: Path
    key: Path
    authorities: Path | None = None


def check_certificate(tls: Tls) -> None:
    """Check that certificate and key are usable.

    Raises:
        UsageError: one of the files cannot be read.
        CannotServe: they do not match.
    """
    for path in (tls.certificate, tls.key):
        try:
            path.open("rb").close()
        except OSError as error:
            raise UsageError(f"Cannot read {path}: {error.strerror}") from error
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, password=lambda: b"")
    except (ssl.SSLError, OSError) as error:
        raise CannotServe(
            f"The certificate {tls.certificate} cannot be used with the key {tls.key}",
            hint="Both are PEM files, the key is that of the first certificate, and has no password.",
        ) from error
