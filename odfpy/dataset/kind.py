"""Kinds of datasets."""

from __future__ import annotations

from enum import Enum


class DatasetKind(Enum):
    """Root datasets take in outside data; derivative datasets are computed from other datasets."""

    ROOT = "Root"
    DERIVATIVE = "Derivative"
