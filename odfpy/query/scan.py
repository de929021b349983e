"""Scans of a query: the slices to read for a table, and those that can be skipped."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from odfpy.chain.slices import SliceOfBlock, overlapping, slice_files, slice_paths
from odfpy.data.schemas.schema import DataSchema
from odfpy.engine.sql.ad_hoc import Projection, SqlTable
from odfpy.errors import WrongProjection, did_you_mean
from odfpy.query.references import AtBlock, AtOffset, AtTime, LogView, TableReference
from odfpy.query.resolve import HistoryPrefix, Resolved
from odfpy.query.statistics import event_times, has_only_appends


@dataclass(frozen=True)
class Scan:
    """The part of a dataset that is read for one table.

    Attributes:
        reference: the table.
        resolved: the dataset.
        cut: its history up to the requested point in time.
        slices: the slices of `cut` that are read.
        projection: the projection of the changelog, None for the changelog itself.
        pruned: the number of slices that are not read, by reason.
    """

    reference: TableReference
    resolved: Resolved
    cut: HistoryPrefix
    slices: list[SliceOfBlock]
    projection: Projection | None
    pruned: dict[str, int] = field(default_factory=dict)

    @property
    def schema(self) -> DataSchema:
        """The schema at the requested point in time; before there was one, the first schema."""
        return self.cut.state.schema or self.resolved.state.require_schema(self.resolved.name)

    @property
    def last_offset(self) -> int | None:
        """The last offset that is read, None for all of the last slice."""
        return self.cut.last_offset

    def schema_file(self) -> Path:
        """Return the path of a file without rows that has the schema."""
        return self.resolved.resolver.schema_file(self.schema)

    def table(self) -> SqlTable:
        """Return the table for an engine.

        Raises:
            HashMismatch: a slice is damaged.
        """
        paths = slice_paths(self.resolved.dataset.layout.data, self.slices, of=self.resolved.name)
        return SqlTable(
            name=self.reference.table,
            schema_file=str(self.schema_file()),
            data_paths=tuple(map(str, paths)),
            vocab=self.cut.state.vocab,
            last_offset=self.last_offset,
            projection=self.projection,
        )

    def described(self, first: int | None = None, last: int | None = None) -> list[str]:
        """Return lines that explain which slices are read and pruned; optionally for rows of an interval of offsets."""
        slices, pruned = self.slices, dict(self.pruned)
        if first is not None and last is not None:
            slices = overlapping(slices, first, last) if first <= last else []
            pruned["other offsets"] = len(self.slices) - len(slices)
        size = sum(item.data.size for item in slices)
        every = len(self.cut.slices) + self.cut.later
        lines = [
            f"table: {self.resolved.name}, {_form(self.reference, self.projection)}, block {self.resolved.head}",
            f"  slices: {len(slices)} of {every} are read, {size} bytes",
        ]
        return lines + [f"  not read: {count}, {reason}" for reason, count in pruned.items() if count]


def plan_scan(reference: TableReference, resolved: Resolved, where: str) -> Scan:
    """Plan which slices are read for a table.

    Args:
        reference: the table.
        resolved: its dataset.
        where: position in the query, for messages.

    Raises:
        NotYetThen, NotFound, BlockOfAnother: there is no such point in time or block.
        ObjectNotFound: a slice is missing.
    """
    cut = resolved.cut(reference.at, where)
    pruned = {"later than the requested time": cut.later}
    paths = slice_files(resolved.dataset.layout.data, cut.slices)
    if reference.shown is LogView.LOG:
        return Scan(reference, resolved, cut, cut.slices, None, pruned)
    vocabulary = cut.state.vocab
    _check_key(reference, cut, where)
    key = reference.keys or cut.state.primary_key
    may_be_plain = key is None or reference.of is not None
    only_appends = may_be_plain and all(has_only_appends(path, vocabulary) for path in paths)
    if only_appends and reference.of is None:
        return Scan(reference, resolved, cut, cut.slices, None, pruned)
    slices = cut.slices
    if reference.of is not None and (key is None or only_appends):
        # Within a key, retractions and corrections of any event time decide about earlier versions.
        known = [(one, event_times(path, vocabulary)) for one, path in zip(slices, paths, strict=True)]
        slices = [one for one, times in known if times is None or times[0] <= reference.of]
        pruned["all rows have later event times"] = len(cut.slices) - len(slices)
    projection = Projection(key, reference.of, only_appends)
    return Scan(reference, resolved, cut, slices, projection, pruned)


def _check_key(reference: TableReference, cut: HistoryPrefix, where: str) -> None:
    names = [field.name for field in cut.state.schema.fields] if cut.state.schema is not None else []
    for name in reference.keys or ():
        if name not in names:
            hint = did_you_mean(name, names, otherwise=f"The columns of {reference.dataset} are {', '.join(names)}.")
            raise WrongProjection(f"{reference.dataset} has no column `{name}` to be a key{where}", hint=hint)


def _form(reference: TableReference, projection: Projection | None) -> str:
    match reference.at:
        case AtTime(time):
            moment = f" as at {time}"
        case AtBlock(text):
            moment = f" as at {text}"
        case AtOffset(offset):
            moment = f" as at offset {offset}"
        case None:
            moment = ""
    happened = "" if reference.of is None else f" as of {reference.of}"
    key = f" by {', '.join(projection.key)}" if projection is not None and projection.key else ""
    return f"{reference.shown.value}{key}{moment}{happened}"
