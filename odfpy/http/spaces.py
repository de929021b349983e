"""Address spaces: the distance of an address from this machine, and limits on the locations that servers may name.

Servers name further locations: by a redirect, or by the URL of a file. These must not be services that only this
machine can reach, such as on loopback, or the credentials that clouds serve at 169.254.169.254. So they must be in the
same address space as the server, or a more public one (Fetch standard, "Private network access").
"""

from __future__ import annotations

import ipaddress
import socket
from enum import IntEnum
from typing import TypeAlias

from odfpy.errors import OdfError

_Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class AddressSpace(IntEnum):
    """The reach of an address; greater values are closer to this machine."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    LINK_LOCAL = 3

    @property
    def shown(self) -> str:
        """Return the name for messages."""
        return self.name.lower().replace("_", "-")


def space_of(address: str) -> AddressSpace:
    """Return the address space of an IP address.

    Raises:
        ValueError: the text is not an IP address.
    """
    found = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if found.is_link_local:
        return AddressSpace.LINK_LOCAL
    if found.is_loopback or found.is_unspecified:
        return AddressSpace.LOOPBACK
    return AddressSpace.PUBLIC if found.is_global else AddressSpace.PRIVATE


def space_of_peer(peer: socket.socket) -> AddressSpace:
    """Return the address space of a connected socket's peer; resolving the name again could give another address.

    Raises:
        OSError: the socket is not connected.
    """
    return space_of(peer.getpeername()[0])


def space_of_host(host: str) -> AddressSpace:
    """Return the address space of a host name, for connections through a proxy: unknown names count as public."""
    if host.rstrip(".").lower().rpartition(".")[2] == "localhost":
        return AddressSpace.LOOPBACK
    try:
        return space_of(host)
    except ValueError:
        return AddressSpace.PUBLIC


def require_no_nearer(shown: str, space: AddressSpace, nearest: AddressSpace, error: type[OdfError]) -> None:
    """Check that a location is not closer to this machine than the server that has named it.

    Args:
        shown: the location, for messages.
        space: address space of the location.
        nearest: address space of the server.
        error: class of the error to raise.
    """
    if space > nearest:
        raise error(
            f"{shown}: a {nearest.shown} server leads there, and that is a {space.shown} address",
            hint="A server must not redirect to an address nearer to this machine than itself. "
            "To use that address, pass it directly.",
        )


def _plain(address: _Address) -> _Address:
    """Return the IPv4 address embedded in an IPv6 address, or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address
