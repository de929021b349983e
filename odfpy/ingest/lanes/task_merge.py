"""The merge of the Spark lane when all tasks run on one machine: its SQL runs in the database of the local lane.

Spark would sort the keys into files and read them again, twice, on the same disk. The database joins them within its
memory limit, and spills the remaining ones. The result equals that of `spark_merge`.
"""

# ruff: noqa: S608  (SQL is made of roles)

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from odfpy.data.data_warning import MAX_EXAMPLES, DataWarning
from odfpy.data.schemas.fit import fit_table
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import iter_slice, slice_schema
from odfpy.ingest.lanes.positions import PLACES, MergedPositions, RepeatedKeys
from odfpy.ingest.lanes.request import LaneRequest
from odfpy.ingest.lanes.runs import Run, gather_runs, rows_of_run, write_batches
from odfpy.ingest.ledger_conflicts import conflicting_places, others, warning_of, with_fingerprints
from odfpy.ingest.local_merge import create_state, merged_places
from odfpy.ingest.merge.base import repeated_keys
from odfpy.ingest.merge_plan import MergePlan, relation
from odfpy.state.current import ScannedState
from odfpy.state.database import database

if TYPE_CHECKING:
    import duckdb

_MEMORY: Final = "1GB"
_ROWS_AT_ONCE: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class TaskMerge:
    """The merge of one ingest; its methods are run by tasks.

    Attributes:
        request: the ingest.
        runs: the runs, in the order of the input.
        schema: the schema of the dataset including these rows.
        plan: the plan of the merge.
        folder: a folder for positions, and for data that does not fit into memory.
    """

    request: LaneRequest
    runs: Sequence[Run]
    schema: DataSchema
    plan: MergePlan
    folder: str

    def repeated(self) -> RepeatedKeys:
        """Return the keys that occur more than once."""
        if not self.plan.keys:
            return RepeatedKeys(0, 0, 0)
        query = f"SELECT COUNT(*), SUM(repeats - 1), MIN(first_pos) FROM ({repeated_keys(self.plan.shape)}) AS repeated"
        with self._database() as (db, _):
            (found,) = db.execute(query).fetchall()
        return RepeatedKeys(*(int(number or 0) for number in found))

    def places(self) -> MergedPositions:
        """Return the result of the merge, in order."""
        counts = np.zeros(4, np.int64)
        path = f"{self.folder}/places"

        def counted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                rows = batch.cast(PLACES)
                counts[:] += np.bincount(rows.column("op").to_numpy(), minlength=4)
                yield rows

        with self._database() as (db, state):
            create_state(db, state, self.plan)
            found = db.sql(merged_places(self.plan)).to_arrow_reader(_ROWS_AT_ONCE)
            write_batches(PLACES, counted(iter(found)), path)
        appended, retracted, corrected_from, corrected_to = counts.tolist()
        return MergedPositions(
            (path,), (int(counts.sum()),), counts=(appended, retracted, corrected_from, corrected_to)
        )

    def warn_conflicting_rows(self, places: MergedPositions) -> tuple[DataWarning, ...]:
        """Return a warning about keys that a ledger has with other values; reads the history and the dropped rows."""
        taken = places.between(0, places.rows).column("pos").to_numpy() if places.rows else np.empty(0, np.int64)
        left_out = others(taken, sum(run.rows for run in self.runs))
        state = ScannedState([Path(path) for path in self.request.slices], self.schema, self.request.vocab)
        with database(scratch=Path(self.folder) / "known", memory=_MEMORY, diagnose=state.check) as db:
            first = 0
            for run in self.runs:
                start, stop = np.searchsorted(left_out, [first, first + run.rows])
                here = left_out[start:stop]
                rows = rows_of_run(run).columns.take(pa.array(here - first))
                self._insert(db, "known", with_fingerprints(db, rows, self.plan, here))
                first += run.rows
            for batch in self._history(rows_of_run(self.runs[0], 0).columns.schema):
                nowhere = np.zeros(batch.num_rows, np.int64)
                self._insert(db, "history", with_fingerprints(db, batch, self.plan, nowhere))
            found = conflicting_places(db, self.plan, "history")
        return warning_of(
            len(found), gather_runs(list(self.runs), found[:MAX_EXAMPLES], list(self.plan.keys)).to_pylist()
        )

    def _history(self, schema: pa.Schema) -> Iterator[pa.Table]:
        """Yield all rows of the dataset, batch by batch, with the columns of the input."""
        for path in self.request.slices:
            present = [name for name in schema.names if name in slice_schema(path).names]
            for batch in iter_slice(path, columns=present, vocab=self.request.vocab):
                yield fit_table(pa.Table.from_batches([batch]), schema)

    @staticmethod
    def _insert(db: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
        db.register("more", rows)
        db.execute(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM more LIMIT 0")
        db.execute(f"INSERT INTO {name} SELECT * FROM more")
        db.unregister("more")

    @contextmanager
    def _database(self) -> Iterator[tuple[duckdb.DuckDBPyConnection, ScannedState]]:
        """Provide a database with the relation `new`, and the state of the dataset."""
        state = ScannedState([Path(path) for path in self.request.slices], self.schema, self.request.vocab)
        with database(scratch=Path(self.folder) / "database", memory=_MEMORY, diagnose=state.check) as db:
            first = 0
            for at, run in enumerate(self.runs):
                db.register("run", relation(rows_of_run(run), self.plan, first))
                db.execute("INSERT INTO new SELECT * FROM run" if at else "CREATE TABLE new AS SELECT * FROM run")
                first += run.rows
            db.unregister("run")
            yield db, state
