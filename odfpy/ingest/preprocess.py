"""Preprocessing: a query over the rows as read, before they are merged (ODF specification, "Preprocess")."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from odfpy.dataset.transform import TransformSql

INPUT = "input"
"""Name of the view that has the rows as read."""


def preprocess(
    transform: TransformSql | None,
    table: pa.Table,
    run: Callable[[TransformSql, Mapping[str, pa.Table]], pa.Table],
) -> pa.Table:
    """The rows that the query makes of those read; without a query, the same.

    Args:
        transform: one or several SQL steps.
        table: the rows as read.
        run: runs the steps over tables by name, on the engine that the transform names.

    Raises:
        EngineError: the engine refuses the query or cannot run it.
    """
    return table if transform is None else run(transform.normalized(), {INPUT: table})
