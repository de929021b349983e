"""Kinds of datasets."""

from __future__ import annotations

from enum import Enum


class DatasetKind(Enum):
    """Kinds of datasets: root datasets ingest external data, derivative datasets are computed from other datasets."""

    ROOT = "Root"
    DERIVATIVE = "Derivative"
