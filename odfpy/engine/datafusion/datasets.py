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

    Where conditions contradict each other, its filter is a constant instead of an expression, which pyarrow does not
    take. Fragments are partitions to it, whose rows it takes as they come; so all files are one of them.
    """

    def scanner(self, **options: Any) -> ds.Scanner:
        return super().scanner(**{**options, "filter": _as_expression(options.get("filter"))})

    def get_fragments(self, filter: Any = None) -> Any:  # noqa: A002  (pyarrow's name)
        del filter
        return [_Whole(self)]


class _Whole:
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
    """Let queries see a dataset of Arrow under a name.

    Args:
        context: the session.
        name: name of the table.
        dataset: the rows.
        schema: their schema.
    """
    inner = f"__odf_dataset_{name}"
    context.register_dataset(quoted(inner), _Dataset(schema, [dataset]))
    context.register_view(quoted(name), in_one_order(context, inner, schema))


def in_one_order(context: SessionContext, name: str, schema: pa.Schema) -> DataFrame:
    """Return the rows of a table over files, with conditions on fractions that follow the order of DataFusion.

    There, NaN is greater than all numbers. Arrow, to which DataFusion leaves conditions on a dataset, has no order for
    it, and the statistics of a file, by which it leaves out row groups itself, do not know it. A function around
    fractions, which changes none of them, keeps both away.

    Args:
        context: the session.
        name: of the table.
        schema: of its rows.
    """
    if not any(pa.types.is_floating(field.type) for field in schema):
        return context.table(quoted(name))
    columns = ", ".join(_kept(quoted(field.name), field.type) for field in schema)
    return run_query(context, f"SELECT {columns} FROM {quoted(name)}")


def _kept(column: str, kind: pa.DataType) -> str:
    return f"nanvl({column}, {column}) AS {column}" if pa.types.is_floating(kind) else column
