"""The address that a server listens on."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.serving.http.tls import Tls


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address that a server listens on, and its certificate.

    Attributes:
        host: host name or address.
        port: port; 0 for any free port.
        tls: certificate and key; None for unencrypted connections.
    """

    host: str
    port: int
    tls: Tls | None = None
