"""Address spaces: how near to this machine an address is, and where a server may lead from there.

Somebody else's server says where to go on: by a redirect, or by the URL of a file. It must not lead to what only this
machine reaches, such as a service on loopback, or the secrets that a cloud hands out at 169.254.169.254. So it may lead
only to addresses that are as public as its own, or more (Fetch standard, "Private network access").
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
    """The reach of an address; a greater one is nearer to this machine."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    LINK_LOCAL = 3

    @property
    def shown(self) -> str:
        """For messages."""
        return self.name.lower().replace("_", "-")


def space_of(address: str) -> AddressSpace:
    """The space of an IP address as text.

    Raises:
        ValueError: it is not an IP address.
    """
    found = _plain(ipaddress.ip_address(address.partition("%")[0]))
    if found.is_link_local:
        return AddressSpace.LINK_LOCAL
    if found.is_loopback or found.is_unspecified:
        return AddressSpace.LOOPBACK
    return AddressSpace.PUBLIC if found.is_global else AddressSpace.PRIVATE


def space_of_peer(peer: socket.socket) -> AddressSpace:
    """The space of what a socket is connected to: what the name led to, not what it might lead to next time.

    Raises:
        OSError: it is not connected.
    """
    return space_of(peer.getpeername()[0])


def space_of_host(host: str) -> AddressSpace:
    """The space of a host as far as its name tells, for what a proxy connects to: other names count as public."""
    if host.rstrip(".").lower().rpartition(".")[2] == "localhost":
        return AddressSpace.LOOPBACK
    try:
        return space_of(host)
    except ValueError:
        return AddressSpace.PUBLIC


def require_no_nearer(shown: str, space: AddressSpace, nearest: AddressSpace, error: type[OdfError]) -> None:
    """Make sure that where a server leads is no nearer to this machine than the server.

    Args:
        shown: what it leads to, for messages.
        space: where that is.
        nearest: where the server is.
        error: the class of the error.
    """
    if space > nearest:
        raise error(
            f"{shown}: a {nearest.shown} server leads there, and that is a {space.shown} address",
            hint="A server may not lead to what is nearer to this machine than itself. "
            "If you mean that address, name it yourself.",
        )


def _plain(address: _Address) -> _Address:
    """The IPv4 address in one that only wraps it."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else address
