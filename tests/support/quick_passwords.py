"""Passwords that are hashed with little work: with the recommended one, each takes a quarter of a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import argon2
import pytest

from odfpy.sharing.store import passwords

RECOMMENDED = passwords._HASHER
LITTLE = argon2.PasswordHasher(time_cost=1, memory_cost=1024, parallelism=1)


@contextmanager
def quick_passwords(hasher: argon2.PasswordHasher = LITTLE) -> Iterator[None]:
    """Hash and verify passwords in this process with less work.

    Args:
        hasher: how they are hashed.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_HASHER", hasher)
        passwords._nobodys_hash.cache_clear()
        yield
    passwords._nobodys_hash.cache_clear()
