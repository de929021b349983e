"""Rows of files as tables of DataFusion, read by Arrow or by itself."""

# ruff: noqa: S608  (SQL is made of quoted names)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds

from odfpy.engine.datafusion.session import quoted, run_query

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext


class _Dataset(ds.UnionDataset):  # type: ignore[misc]
    """A dataset as DataFusion reads it.

    For contradictory conditions, its filter is a constant instead of an expression, which pyarrow does not accept. It
    treats fragments as partitions and returns their rows unordered; so all files are one fragment.
    """

    def scanner(self, **options: Any) -> ds.Scanner:
        return super().scanner(**{**options, "filter": _as_expression(options.get("filter"))})

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002  (pyarrow's name)
        del filter
        return [_WholeFragment(self)]


class _WholeFragment:
    """A dataset as its only fragment."""

    def __init__(self, dataset: _Dataset) -> None:
        self._dataset = dataset

    def scanner(self, schema: pa.Schema | None = None, **options: Any) -> ds.Scanner:
        """Scan file after file: the dataset has the schema."""
        del schema
        return self._dataset.scanner(**options)


def _as_expression(condition: Any) -> Any:
    return ds.scalar(condition) if isinstance(condition, pa.Scalar) else condition


def name_dataset(context: SessionContext, name: str, dataset: ds.Dataset, schema: pa.Schema) -> None:
    """Register an Arrow dataset as a table.

    Args:
        context: the session.
        name: name of the table.
        dataset: the rows.
        schema: schema of its rows.
    """
    inner = f"__odf_dataset_{name}"
    context.register_dataset(quoted(inner), _Dataset(schema, [dataset]))
    context.register_view(quoted(name), in_one_order(context, inner, schema))


def in_one_order(context: SessionContext, name: str, schema: pa.Schema) -> DataFrame:
    """Return the rows of a table over files; conditions on floating-point columns follow DataFusion's order.

    There, NaN is greater than all numbers. But DataFusion delegates conditions on a dataset to Arrow, which does not
    order NaN; and file statistics, by which it skips row groups, ignore it. An identity function around floating-point
    columns prevents both.

    Args:
        context: the session.
        name: name of the table.
        schema: schema of its rows.
    """
    if not any(pa.types.is_floating(field.type) for field in schema):
        return context.table(quoted(name))
    columns = ", ".join(_not_pushed_down(quoted(field.name), field.type) for field in schema)
    return run_query(context, f"SELECT {columns} FROM {quoted(name)}")


def _not_pushed_down(column: str, kind: pa.DataType) -> str:
    """Return SQL for a column whose conditions DataFusion evaluates itself."""
    return f"nanvl({column}, {column}) AS {column}" if pa.types.is_floating(kind) else column
