"""The system user who runs a command."""

from __future__ import annotations

import getpass


def user_name() -> str | None:
    """Return the user name; None if the user id has none, as in a container with an arbitrary user id."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
