"""Answers as JSON in the format of the reference implementation's node, with an optional commitment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from odfpy.codec.tree import to_tree
from odfpy.data.rows.plain_values import num_values
from odfpy.dataset.identity import KeyPair
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import ResultTooLarge
from odfpy.query.service import QueryService
from odfpy.query.wire.commitments import Commitment
from odfpy.query.wire.layouts import laid_out
from odfpy.query.wire.reproducible import check_reproducible
from odfpy.query.wire.request import Include, QueryRequest
from odfpy.query.wire.schema_formats import write_schema

if TYPE_CHECKING:
    import pyarrow as pa


_BYTES_OF_VALUE: Final = 4


@dataclass(frozen=True, slots=True)
class ResponseLimits:
    """Limits on the size of an answer; unlimited by default."""

    rows: int | None = None
    bytes: int | None = None

    def check_values(self, table: pa.Table) -> None:
        """Check the number of values in rows: some values take no memory in Arrow, but do in JSON.

        Raises:
            ResultTooLarge: there are too many values.
        """
        if self.bytes is not None and sum(map(num_values, table.columns)) * _BYTES_OF_VALUE > self.bytes:
            raise ResultTooLarge(
                f"The answer has more than {self.bytes // _BYTES_OF_VALUE} values",
                hint="Ask for fewer rows or columns, or over Flight SQL.",
            )


@dataclass(frozen=True, slots=True)
class Answered:
    """The rows of an answer.

    Attributes:
        table: the rows.
        request: the request, bound to the blocks from which it was answered.
    """

    table: pa.Table
    request: QueryRequest

    def output(self) -> dict[str, Any]:
        """Return the rows in the requested layout.

        Raises:
            SchemaError: the layout or the format does not support the schema.
        """
        layout, form = self.request.data_format, self.request.schema_format
        output = {"data": laid_out(self.table, layout), "dataFormat": layout.value}
        if form is not None:
            output |= {"schema": write_schema(self.table.schema, form), "schemaFormat": form.value}
        return output

    def tree(self, key: KeyPair | None = None) -> dict[str, Any]:
        """Return the complete answer, signed by a key if a proof was requested; errors as for `output`."""
        output, include = self.output(), self.request.include
        tree: dict[str, Any] = {"input": self.request.tree()} if Include.INPUT in include else {}
        tree["output"] = output
        if Include.PROOF in include and key is not None:
            commitment = Commitment.to(tree["input"], output)
            tree |= {"subQueries": [], "commitment": to_tree(commitment), "proof": to_tree(commitment.signed_by(key))}
        return tree


def ask(
    service: QueryService,
    request: QueryRequest,
    *,
    control: CancellationToken | None = None,
    limits: ResponseLimits | None = None,
    is_checked: bool = False,
) -> Answered:
    """Answer a request.

    Args:
        service: the query service.
        request: the request.
        control: cancels the query from another thread.
        limits: limits on the size of the answer.
        is_checked: whether a proof of the request already exists, so that its reproducibility need not be checked.

    Raises:
        NotReproducible: a proof was requested, but the answer is not reproducible.
        ResultTooLarge: the answer exceeds the limits.
        OdfError: as `QueryService.run`, also while rows are read.
    """
    limits = limits or ResponseLimits()
    require_datasets(service, request)
    if Include.PROOF in request.include and not is_checked:
        check_reproducible(service, request)
    with service.run(request.to_query(max_rows=limits.rows, max_bytes=limits.bytes), control) as answer:
        table, inputs = answer.read_all(), answer.inputs
    limits.check_values(table)
    if limits.rows is not None and table.num_rows > limits.rows:
        raise too_many_rows(limits.rows)
    return Answered(table, request.bound_to(inputs))


def too_many_rows(most: int) -> ResultTooLarge:
    """Return the error of an answer with more rows than allowed."""
    return ResultTooLarge(
        f"The answer has more than {most} rows",
        hint="Request it page by page, with skip and limit, or over Flight SQL.",
    )


def require_datasets(service: QueryService, request: QueryRequest) -> None:
    """Check that the datasets of a request exist: otherwise, an error would report unknown names in the query.

    Raises:
        DatasetNotFound: a dataset does not exist.
    """
    for state in request.datasets or ():
        service.resolver.find(state.id)
