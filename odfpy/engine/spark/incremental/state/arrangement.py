"""The arrangement of a derivative during a pull; see `odfpy.engine.arrangement`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.engine.arrangement import ArrangedRows, ArrangementManifest, usable
from odfpy.engine.contract import TransformRequest
from odfpy.engine.spark.rows.parallelism import Parallelism
from odfpy.state.arrangement import add_entries, all_rows, rows_of, write_run
from odfpy.state.fingerprints import Entries, Fingerprints
from odfpy.state.run_file import StateDamaged, damage_found
from odfpy.state.run_names import new_run_name


@dataclass
class Arrangement:
    """The arrangement of a derivative during a pull: the state before it, and the state for the next pull.

    Attributes:
        request: the request.
        engine: version of the engine.
        parallelism: the number of tasks, which grows with the number of rows that are looked up.
    """

    request: TransformRequest
    engine: str
    parallelism: Parallelism
    _known: dict[str, ArrangedRows] = field(default_factory=dict)
    _recorded: dict[str, ArrangedRows] = field(default_factory=dict)

    def __post_init__(self) -> None:
        manifest = usable(self.request, self.engine)
        self._known = {} if manifest is None else {rows.name: rows for rows in manifest.arranged}

    def known(self, name: str) -> ArrangedRows | None:
        """Return what is known about the earlier rows of a stateful input, which may be arranged or not."""
        return self._known.get(name)

    def look_up(self, name: str, wanted: Fingerprints) -> pa.Table | None:
        """Return the rows of some keys, and perhaps a few others; None if the arrangement is damaged.

        Args:
            name: name of the state of the stateful input.
            wanted: fingerprints of the keys, ascending, each once.
        """
        try:
            with damage_found():
                rows = pa.concat_tables(rows_of(self._folder, self._known[name].runs, wanted))
        except StateDamaged:
            self._known[name] = replace(self._known[name], runs=())
            return None
        self.parallelism.add(rows.num_rows)
        return rows

    def write_all(self, name: str, path: Path) -> bool:
        """Write all rows of a stateful input to a Parquet file; return False if there are none, or they are damaged.

        Args:
            name: name of the state of the stateful input.
            path: the file.
        """
        runs = self._known[name].runs
        try:
            with damage_found():
                batches = all_rows(self._folder, runs)
                if (first := next(batches, None)) is None:  # no batch has the schema: all groups were retracted
                    return False
                with pq.ParquetWriter(path, first.schema, compression="zstd", compression_level=1) as writer:
                    for batch in itertools.chain([first], batches):
                        writer.write_batch(batch)
        except StateDamaged:
            self._known[name] = replace(self._known[name], runs=())
            return False
        self.parallelism.add(self._known[name].num_rows)
        return True

    def record(self, rows: ArrangedRows) -> None:
        """Record the state of a stateful input for the next pull; `finish` writes it."""
        self._recorded[rows.name] = rows

    def extended(self, known: ArrangedRows, new: Entries) -> ArrangedRows:
        """Return the state extended by the rows of this pull; without runs if a file is damaged or the disk is full.

        Args:
            known: the earlier rows.
            new: the new rows.
        """
        try:
            with damage_found():
                return replace(known, runs=add_entries(self._folder, known.runs, self._new_run(), new))
        except StateDamaged:
            return replace(known, runs=())

    def rebuilt(self, known: ArrangedRows, schema: pa.Schema, parts: Iterator[Entries]) -> ArrangedRows:
        """Return the state rebuilt from all rows; unchanged if there is no room for it.

        Args:
            known: the state so far.
            schema: schema of the rows.
            parts: the rows, in the order of their fingerprints.
        """
        try:
            return replace(known, runs=(write_run(self._new_run(), parts, schema),), too_many=0)
        except OSError:
            return known

    def finish(self) -> None:
        """Write the manifest of the recorded state."""
        if self._recorded:
            with suppress(OSError):  # it is a cache
                ArrangementManifest.after(self.request, self.engine, [*self._recorded.values()]).write(self._target)

    @property
    def _folder(self) -> Path:
        return Path(self.request.prev_arrangement_path or "")

    @property
    def _target(self) -> Path:
        return Path(self.request.new_arrangement_path or "")

    def _new_run(self) -> Path:
        self._target.mkdir(exist_ok=True)
        return self._target / new_run_name()


def carry_over_arrangement(request: TransformRequest, engine: str) -> None:
    """Carry an arrangement over a pull that brings nothing new.

    Args:
        request: the request.
        engine: version of the engine.
    """
    manifest = None if request.new_arrangement_path is None else usable(request, engine)
    if manifest is not None and request.new_arrangement_path is not None:
        with suppress(OSError):
            ArrangementManifest.after(request, engine, manifest.arranged).write(Path(request.new_arrangement_path))
