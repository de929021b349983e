"""Arrangements of a derivative dataset: earlier rows of its inputs by key, for queries that always need all of them.

Such queries (joins by key, running sums, EXCEPT...) keep no rows in the checkpoint. Without an arrangement, a pull
reads the whole history of the inputs for the rows of the few keys that it touches. An arrangement is a cache of the
workspace, a folder beside the dataset: it is in no chain, is used only at the very point of the inputs that it was
made for, and can be made again at any time. Results are the same with and without it.
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
    """The rows of one stateful input.

    Attributes:
        name: of the stateful input.
        only_appends: whether all of them have the weight 1.
        runs: the files that have them, the oldest first; none if nobody has looked them up, or if that does not pay.
        too_many: how many rows there were when it was found out that to look them up does not pay; else 0.
        unused: pulls since somebody has looked them up.
    """

    name: str
    only_appends: bool
    runs: tuple[RunInfo, ...] = ()
    too_many: U64 = 0
    unused: U64 = 0

    @property
    def num_rows(self) -> int:
        """Number of rows that are arranged."""
        return sum(run.rows for run in self.runs)


@dataclass(frozen=True, slots=True)
class ArrangementManifest:
    """The identity of an arrangement, and its parts.

    Attributes:
        format: version of the files.
        engine: version of the engine.
        transform: digest of queries and columns, as that of a checkpoint.
        inputs: up to where the inputs have been processed, in declared order.
        arranged: the rows of each stateful input.
    """

    format: U64
    engine: str
    transform: str
    inputs: tuple[InputPosition, ...]
    arranged: tuple[ArrangedRows, ...]

    @property
    def files(self) -> frozenset[str]:
        """Names of the files with rows."""
        return frozenset(run.name for rows in self.arranged for run in rows.runs)

    @classmethod
    def after(cls, request: TransformRequest, engine: str, arranged: Sequence[ArrangedRows]) -> ArrangementManifest:
        """The manifest of what a run leaves.

        Args:
            request: the request.
            engine: version of the engine.
            arranged: the rows of each stateful input.
        """
        return cls(FORMAT, engine, transform_digest(request), positions_after(request), tuple(arranged))

    def write(self, folder: Path) -> None:
        """Write it into a folder.

        Raises:
            OSError: it cannot be written.
        """
        folder.mkdir(exist_ok=True)
        (folder / _MANIFEST).write_bytes(sealed(json.dumps(to_tree(self)).encode()))
        list_runs(folder, self.files)

    @classmethod
    def read(cls, folder: Path) -> ArrangementManifest | None:
        """The manifest in a folder; None if there is none that this release can use."""
        try:
            with damage_found():
                found: ArrangementManifest = from_tree(cls, json.loads(unsealed((folder / _MANIFEST).read_bytes())))
        except (StateDamaged, OdfError):
            return None
        # A name may not lead out of the folder.
        return found if found.format == FORMAT and all(map(is_run_name, found.files)) else None


def usable(request: TransformRequest, engine: str) -> ArrangementManifest | None:
    """The arrangement of a request, if it is of this transform and engine, and of the point that the run goes on from.

    Args:
        request: the request.
        engine: version of this engine.
    """
    if request.prev_arrangement_path is None:
        return None
    found = ArrangementManifest.read(Path(request.prev_arrangement_path))
    if found is None or (found.engine, found.inputs) != (engine, positions_before(request)):
        return None
    return found if found.transform == transform_digest(request) else None
