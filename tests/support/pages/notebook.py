"""The notebook of the documentation, run by a separate kernel, in a folder that represents `docs`.

python tests/support/pages/notebook.py    runs it, and stores its output
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
"""Maximum seconds of a cell, or of the kernel's start, on a busy machine."""
_TRIES = 3
"""Jupyter chooses ports before its kernel binds them: another process may take one in between."""


def recorded() -> Any:
    """Return the notebook as it is in the repository."""
    return nbformat.read(NOTEBOOK, as_version=4)


def run(notebook: Any, folder: Path) -> Any:
    """Run the notebook and return it with the current output of its cells.

    Args:
        notebook: as it is written down.
        folder: an empty folder, in which the kernel may leave files, even when it is killed.

    Raises:
        CellExecutionError: a cell has failed.
    """
    docs = folder / "docs"
    docs.mkdir()
    (folder / "snapshots").symlink_to(NOTEBOOK.parents[1] / "snapshots")  # expected beside the notebook
    for _ in range(_TRIES - 1):
        try:
            return _run(deepcopy(notebook), docs)
        except RuntimeError:  # the kernel did not start; errors in a cell are other exceptions
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
    """Return the output of each cell as a list; errors as displayed to users."""
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
