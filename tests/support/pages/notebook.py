"""The notebook of the documentation, run by a kernel of its own, in a folder that stands for `docs`.

python tests/support/pages/notebook.py    runs it, and writes down what it shows
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs" / "notebook.ipynb"
_PATIENCE = 120
"""Seconds that a cell, or the start of the kernel, may take on a machine that is busy."""
_TRIES = 3
"""Jupyter chooses ports before its kernel takes them: somebody else may have been faster."""


def recorded() -> Any:
    """The notebook as it is in the repository."""
    return nbformat.read(NOTEBOOK, as_version=4)


def run(notebook: Any, folder: Path) -> Any:
    """The notebook with what its cells show now.

    Args:
        notebook: as it is written down.
        folder: an empty one, where a kernel may leave what it likes, also when it is killed.

    Raises:
        CellExecutionError: a cell has failed.
    """
    docs = folder / "docs"
    docs.mkdir()
    (folder / "snapshots").symlink_to(NOTEBOOK.parents[1] / "snapshots")  # which it finds beside itself
    for _ in range(_TRIES - 1):
        try:
            return _run(deepcopy(notebook), docs)
        except RuntimeError:  # the kernel has not started; what fails in a cell is not such an error
            continue
    return _run(notebook, docs)


def _run(notebook: Any, docs: Path) -> Any:
    client = NotebookClient(
        notebook,
        timeout=_PATIENCE,
        startup_timeout=_PATIENCE,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(docs)}},
    )
    return client.execute()


def shown(notebook: Any) -> list[list[Any]]:
    """What the cells show, one list each; errors as what people see of them."""
    return [[_shown(output) for output in cell.get("outputs", [])] for cell in notebook.cells]


def _shown(output: Any) -> Any:
    if output.output_type == "error":
        return "".join(output.traceback)
    return output.text if output.output_type == "stream" else dict(output.data)


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        done = run(recorded(), Path(scratch))
    done.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    nbformat.write(done, NOTEBOOK)
