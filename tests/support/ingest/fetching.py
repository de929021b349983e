"""For tests of fetching."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from odfpy.data.timestamp import Timestamp
from odfpy.ingest.fetch import FetchedFile

NOW = Timestamp.parse("2030-01-01T00:00:00Z")
"""The time of all fetches in tests."""

Fetcher: TypeAlias = Callable[..., list[FetchedFile]]
"""Fetches all new data; takes a step, and the context as keyword arguments."""
