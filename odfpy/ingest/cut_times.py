"""Times that are finer than what slices store: they are truncated to milliseconds, with a warning.

Two rows whose keys differ only in the truncated part then have the same key, and one of them is dropped, or replaces
the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.read_steps import ReadCsv
from odfpy.chain.sources import MergeStrategy
from odfpy.data.amounts import count_of
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.data.schemas import schema as odf
from odfpy.ingest.normalize import primary_key
from odfpy.ingest.read import schema_of

Source = SetPollingSource | AddPushSource


def with_fine_keys(source: Source) -> Source:
    """Return a text source whose keys are read with microseconds, to find out whether something is truncated.

    A query would see the difference, and numbers are counted in the unit of their type; such sources are read as
    declared.
    """
    read = source.read
    if source.preprocess is not None or not isinstance(read, ReadCsv) or (schema := schema_of(read)) is None:
        return source
    keys = primary_key(source.merge)
    fields = tuple(replace(field, type=_fine(field.type)) if field.name in keys else field for field in schema.fields)
    if fields == schema.fields:
        return source
    return replace(source, read=replace(read, ddl_schema=None, schema=replace(schema, fields=fields)))


def _fine(kind: odf.DataType) -> odf.DataType:
    if isinstance(kind, odf.Option):
        return replace(kind, inner=_fine(kind.inner))
    if isinstance(kind, odf.Timestamp) and kind.unit in (None, odf.TimeUnit.MILLISECOND):
        return replace(kind, unit=odf.TimeUnit.MICROSECOND)
    return kind


def warnings_of_cut_times(cut: Mapping[str, int], strategy: MergeStrategy) -> tuple[DataWarning, ...]:
    """Return warnings about truncated times.

    Args:
        cut: number of truncated times by column.
        strategy: merge strategy of the source.
    """
    keys = [name for name in primary_key(strategy) if cut.get(name)]
    names = keys or [name for name, number in cut.items() if number]
    if not names:
        return ()
    count = sum(cut[name] for name in names)
    where = f"of the primary key ({', '.join(keys)})" if keys else f"in {', '.join(names)}"
    message = (
        f"{count_of(count, 'time')} {where} {'is' if count == 1 else 'are'} finer than a millisecond, and truncated"
    )
    if keys:
        message += (
            ": rows whose keys differ only there get the same key. To distinguish them, declare the column as String,"
            " or convert it to microseconds in `preprocess`"
        )
    return (DataWarning(WarningKind.CUT_TIMES, message, count, tuple(names)),)
