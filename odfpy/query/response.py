"""Answers as JSON, in the words of the reference implementation's node; those with a proof are committed to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from odfpy.codec.tree import to_tree
from odfpy.dataset.identity import KeyPair
from odfpy.engine.control import Control
from odfpy.errors import ResultTooLarge
from odfpy.query.commitments import Commitment
from odfpy.query.layouts import laid_out
from odfpy.query.reproducible import check_reproducible
from odfpy.query.request import Include, Request
from odfpy.query.schema_formats import written
from odfpy.query.service import QueryService

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Limits:
    """How much an answer may be; unlimited by default."""

    rows: int | None = None
    bytes: int | None = None


def respond(
    service: QueryService,
    request: Request,
    key: KeyPair | None = None,
    *,
    control: Control | None = None,
    limits: Limits | None = None,
) -> tuple[dict[str, Any], Request]:
    """Answer a question; gives the answer, and the question bound to the blocks that it was answered from.

    Args:
        service: who is asked.
        request: the question.
        key: signs the answer, if a proof is wanted.
        control: stops it from elsewhere.
        limits: how much the answer may be.

    Raises:
        NotReproducible: a proof is wanted of what others may not get again.
        ResultTooLarge: there is more than there may be.
        OdfError: as `QueryService.run`, and while its rows are read.
    """
    if Include.PROOF in request.include:
        check_reproducible(service, request)
    output, bound = answered(service, request, control, limits)
    response: dict[str, Any] = {"input": bound.tree()} if Include.INPUT in request.include else {}
    response["output"] = output
    if Include.PROOF in request.include and key is not None:
        commitment = Commitment.to(response["input"], output)
        response |= {"subQueries": [], "commitment": to_tree(commitment), "proof": to_tree(commitment.signed_by(key))}
    return response, bound


def answered(
    service: QueryService, request: Request, control: Control | None = None, limits: Limits | None = None
) -> tuple[dict[str, Any], Request]:
    """The answer itself, and the question bound to the blocks that it was answered from; errors as of `respond`."""
    limits = limits or Limits()
    for state in request.datasets or ():
        service.catalogue.find(state.id)  # or the name of it in the query would be called unknown
    with service.run(request.question(max_rows=limits.rows, max_bytes=limits.bytes), control) as answer:
        table = answer.read_all()
        inputs = answer.inputs
    if limits.rows is not None and table.num_rows > limits.rows:
        raise ResultTooLarge(
            f"The answer has more than {limits.rows} rows", hint="Ask for it page by page, with skip and limit."
        )
    return output_of(table, request), request.bound_to(inputs)


def output_of(table: pa.Table, request: Request) -> dict[str, Any]:
    """Rows as a question wants them."""
    layout, form = request.data_format, request.schema_format
    output = {"data": laid_out(table, layout), "dataFormat": layout.value}
    if form is not None:
        output |= {"schema": written(table.schema, form), "schemaFormat": form.value}
    return output
