"""Arrangements: earlier rows of a derivative's inputs, indexed by key, for queries that always need all of them.

Such queries (joins by key, running sums, EXCEPT...) store no rows in the checkpoint. Without an arrangement, a pull
reads the whole history of the inputs for the rows of the few keys that it touches. An arrangement is a cache of the
workspace, in a folder beside the dataset: it is in no chain, it is used only at the exact position in the inputs that
it was made for, and it can be rebuilt at any time. Results are the same with and without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.scalars import U64
from odfpy.engine.checkpoint import InputPosition, positions_after, positions_before, transform_digest
from odfpy.engine.contract import TransformRequest
from odfpy.errors import OdfError
from odfpy.state.run_file import RunInfo, StateDamaged, damage_found
from odfpy.state.run_names import is_run_name, list_runs
from odfpy.state.sealed import sealed, unsealed

FORMAT: Final = 2
"""Version of the files."""

_MANIFEST: Final = "manifest"


@dataclass(frozen=True, slots=True)
class ArrangedRows:
    """The arranged rows of one stateful input.

    Attributes:
        name: name of the state of the stateful input.
        only_appends: whether all of them have the weight 1.
        runs: the files with the rows, the oldest first; none if the rows were never looked up, or if that does not pay.
        too_many: the number of rows at which looking them up turned out not to pay; else 0.
        unused: number of pulls since the rows were last looked up.
    """

    name: str
    only_appends: bool
    runs: tuple[RunInfo, ...] = ()
    too_many: U64 = 0
    unused: U64 = 0

    @property
    def num_rows(self) -> int:
        """Return the number of arranged rows."""
        return sum(run.rows for run in self.runs)


@dataclass(frozen=True, slots=True)
class ArrangementManifest:
    """The identity of an arrangement, and its parts.

    Attributes:
        format: version of the file format.
        engine: version of the engine.
        transform: digest of queries and columns, as for a checkpoint.
        inputs: the positions up to which the inputs have been processed, in declared order.
        arranged: the rows of each stateful input.
    """

    format: U64
    engine: str
    transform: str
    inputs: tuple[InputPosition, ...]
    arranged: tuple[ArrangedRows, ...]

    @property
    def files(self) -> frozenset[str]:
        """Return the names of the files with rows."""
        return frozenset(run.name for rows in self.arranged for run in rows.runs)

    @classmethod
    def after(cls, request: TransformRequest, engine: str, arranged: Sequence[ArrangedRows]) -> ArrangementManifest:
        """Return the manifest of the arrangement that a run leaves.

        Args:
            request: the request.
            engine: version of the engine.
            arranged: the rows of each stateful input.
        """
        return cls(FORMAT, engine, transform_digest(request), positions_after(request), tuple(arranged))

    def write(self, folder: Path) -> None:
        """Write the manifest into a folder.

        Raises:
            OSError: it cannot be written.
        """
        folder.mkdir(exist_ok=True)
        (folder / _MANIFEST).write_bytes(sealed(json.dumps(to_tree(self)).encode()))
        list_runs(folder, self.files)

    @classmethod
    def read(cls, folder: Path) -> ArrangementManifest | None:
        """Return the manifest in a folder; None if there is none that this release can use."""
        try:
            with damage_found():
                manifest: ArrangementManifest = from_tree(cls, json.loads(unsealed((folder / _MANIFEST).read_bytes())))
        except (StateDamaged, OdfError):
            return None
        # A name must not lead out of the folder.
        return manifest if manifest.format == FORMAT and all(map(is_run_name, manifest.files)) else None


def usable(request: TransformRequest, engine: str) -> ArrangementManifest | None:
    """Return the arrangement of a request, if it has the same transform, engine, and position in the inputs.

    Args:
        request: the request.
        engine: version of this engine.
    """
    if request.prev_arrangement_path is None:
        return None
    manifest = ArrangementManifest.read(Path(request.prev_arrangement_path))
    if manifest is None or (manifest.engine, manifest.inputs) != (engine, positions_before(request)):
        return None
    return manifest if manifest.transform == transform_digest(request) else None
