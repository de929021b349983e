"""Types of the fixtures for readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from odfpy.chain.sources import ReadStep

Reader: TypeAlias = Callable[[ReadStep, "str | bytes"], pa.Table]
"""Reads content as if it were a file named `input`."""
