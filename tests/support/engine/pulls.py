"""One derivative, pull by pull, by requests to the engine."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone

import pyarrow.parquet as pq
from support.engine.requests import success, transform_request

from odfpy.dataset.transform import TemporalTable
from odfpy.engine.contract import TransformResponseNeedsHistory
from odfpy.engine.spark.execution import operations

START = datetime(2024, 1, 1, tzinfo=timezone.utc)


def random_rows(dice, first_hour, *, late):
    """Rows of a key and a number within six hours after an hour, and some from long before."""
    hours = [first_hour + dice.randrange(6) for _ in range(8)]
    if late:
        hours += [dice.randrange(first_hour - 6) for _ in range(2)]
    times = [START + timedelta(hours=hour, minutes=dice.randrange(60)) for hour in hours]
    return [("+A", time, dice.choice("xyz"), dice.randrange(100)) for time in times]


@dataclass
class Pulls:
    """The pulls of one derivative."""

    spark: object
    folder: object
    query: object
    asked: int = 0
    temporal: tuple[TemporalTable, ...] = ()

    def pull(self, number, inputs, checkpoint):
        """One pull; the logical hash of its slice, and its checkpoint."""
        folder = self.folder / str(number)
        folder.mkdir(parents=True)
        given = inputs(history=False)
        request = replace(
            transform_request(folder, self.query, *given), prev_checkpoint_path=checkpoint and str(checkpoint)
        )
        if self.temporal:
            request = replace(request, transform=replace(request.transform, temporal_tables=self.temporal))
        response = operations.transform(self.spark, request)
        if isinstance(response, TransformResponseNeedsHistory):
            self.asked += 1
            response = operations.transform(self.spark, replace(request, query_inputs=inputs(history=True)))
        made = success(response).slices
        return made[0].logical_hash if made else None, folder / "out" / "checkpoint"

    def rows(self, number):
        """The rows of the slice of a pull."""
        return pq.read_table(self.folder / str(number) / "out" / "slice").to_pylist()

    def num_kept(self, number):
        """Return the number of rows stored in the checkpoint of a pull."""
        with zipfile.ZipFile(self.folder / str(number) / "out" / "checkpoint") as archive:
            names = [name for name in archive.namelist() if name.endswith(".parquet")]
            return sum(pq.ParquetFile(io.BytesIO(archive.read(name))).metadata.num_rows for name in names)
