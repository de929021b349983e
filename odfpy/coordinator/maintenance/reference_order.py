"""Runs of the reference implementation's DataFusion engine that had several slices of an input to read at once.

DataFusion reads the files of a table in the order of their names, and the names of slices are their hashes. So the rows
of such a run are in an order that anybody can repeat, but it is not the one in which they came: a correction may stand
before the row that it corrects. Runs of odfpy read slices in the order of their rows, always; only to verify what the
reference has recorded are they read as it did. (Its Spark engine sorts what it reads by offset; a UNION ALL of several
inputs in its DataFusion is a race, which nobody can repeat.)
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from odfpy.coordinator.transform.run import OUR_ENGINES
from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import TransformRequest

_ENGINE = "datafusion"


def in_order_of_names(transform: TransformSql, request: TransformRequest) -> TransformRequest | None:
    """The request of a run that read slices in the order of their names.

    Args:
        transform: as it was recorded.
        request: the request of the same run, with slices in the order of their rows.

    Returns:
        None where that is the same, or the run was one of odfpy or of an engine that does not read so.
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
    """The inputs whose slices stand in another order in the second request, by the names that the query gives them."""
    pairs = zip(request.query_inputs, by_name.query_inputs, strict=True)
    return ", ".join(f"`{source.query_alias}`" for source, other in pairs if source != other)
