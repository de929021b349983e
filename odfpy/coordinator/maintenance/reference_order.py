"""Compatibility with the slice order of the reference implementation's DataFusion engine.

That engine reads the files of a table in the order of their names, and the names of slices are hashes. So if a run read
several slices of an input, the order of its rows is reproducible, but not the original one: a correction may precede
the row that it corrects. odfpy always reads slices in the order of their rows. It only reads them in the order of their
names to verify results of the reference implementation. (The Spark engine of the reference sorts its input by offset; a
UNION ALL of several inputs in its DataFusion engine is a race, which cannot be reproduced.)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from odfpy.coordinator.transform.run import OUR_ENGINES
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import TransformRequest

_ENGINE = "datafusion"


def in_order_of_names(transform: TransformSql, request: TransformRequest) -> TransformRequest | None:
    """Return the request of a run that read slices in the order of their names.

    Args:
        transform: the recorded transform.
        request: the request of the same run, with slices in the order of their rows.

    Returns:
        None if the order is the same, or if the run was made by odfpy or by an engine that reads in the order of rows.
    """
    if transform.engine != _ENGINE or (transform.version or "").startswith(OUR_ENGINES):
        return None
    inputs = tuple(
        replace(source, data_paths=tuple(sorted(source.data_paths, key=lambda path: Path(path).name)))
        for source in request.query_inputs
    )
    if inputs == request.query_inputs:
        return None
    return replace(request, query_inputs=inputs, new_data_path=f"{request.new_data_path}-by-name")


def order_differences(request: TransformRequest, by_name: TransformRequest) -> str:
    """Return the names, as used in the query, of the inputs with a different order of slices in the second request."""
    pairs = zip(request.query_inputs, by_name.query_inputs, strict=True)
    return ", ".join(f"`{source.query_alias}`" for source, other in pairs if source != other)
