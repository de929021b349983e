"""Types of the fixtures for readers, and the size of pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa
import pytest

from odfpy.chain.read_steps import ReadStep
from odfpy.ingest.read import csv, files, json, json_array

Reader: TypeAlias = Callable[[ReadStep, "str | bytes"], pa.Table]
"""Reads content as if it were a file named `input`."""


def set_piece_size(patch: pytest.MonkeyPatch, size: int) -> None:
    """Set the size of the pieces in which files are read, a megabyte by default."""
    for module in (files, csv, json, json_array):
        patch.setattr(module, "PIECE_SIZE", size)
