"""Answers as JSON, in the words of the reference implementation's node; those with a proof are committed to."""

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
        """Check that rows become no more values than there may be: some of them take no bytes, until they are written.

        Raises:
            ResultTooLarge: they do.
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
        request: the question, bound to the blocks that it was answered from.
    """

    table: pa.Table
    request: QueryRequest

    def output(self) -> dict[str, Any]:
        """Return the rows in the requested layout.

        Raises:
            SchemaError: they cannot be laid out so, or their schema cannot be written.
        """
        layout, form = self.request.data_format, self.request.schema_format
        output = {"data": laid_out(self.table, layout), "dataFormat": layout.value}
        if form is not None:
            output |= {"schema": write_schema(self.table.schema, form), "schemaFormat": form.value}
        return output

    def tree(self, key: KeyPair | None = None) -> dict[str, Any]:
        """Return the whole answer, signed by a key if a proof was requested; errors as for `output`."""
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
        service: who is asked.
        request: the question.
        control: stops it from elsewhere.
        limits: how much the answer may be.
        is_checked: whether others have given a proof of it already, so that it need not be looked at for that.

    Raises:
        NotReproducible: a proof is wanted of what others may not get again.
        ResultTooLarge: there is more than there may be.
        OdfError: as `QueryService.run`, and while its rows are read.
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
    """Check that the datasets of a question are there: later, their names in the query would be called unknown.

    Raises:
        DatasetNotFound: one is not.
    """
    for state in request.datasets or ():
        service.resolver.find(state.id)
