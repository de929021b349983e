"""Requests to trace output rows back to input rows, and the engine's responses (odfpy).

The rows in question are passed in a file, and so are their origins. In the first file, `WANTED` numbers the rows,
`WEIGHT` is 1, or -1 for a row that retracts another one, and the other columns are those of the output. The second file
has a row for each input row from which one of them was computed: the number; `WAY`, which distinguishes identical rows
of the result; the number of the input; the offset there; and `BRANCH`, which tells through which reference to an input,
counted from left to right in the query, the row came, or -1 where that is unknown.
"""

from __future__ import annotations

from typing import Final, Protocol, TypeAlias, runtime_checkable

from odfpy.data.scalars import U64
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import Transform
from odfpy.engine.contract import (
    TransformRequestInput,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.values import dataclass

WANTED: Final = "__odf_wanted"
WEIGHT: Final = "__odf_weight"
WAY: Final = "way"
INPUT: Final = "input"
OFFSET: Final = "offset"
BRANCH: Final = "branch"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceRequest:
    """A request for the input rows from which output rows were computed.

    Attributes:
        transform: the queries.
        vocab: the system columns of the output.
        query_inputs: the inputs at the time when the rows were computed: interval, history and watermarks are those of
            that run. For row-by-row queries, the interval may span several runs.
        wanted_path: a Parquet file with the rows.
        output_path: where to write the answer, an Arrow IPC stream.
        recorded_schema: schema of the output.
        has_earlier: whether some of the rows are traced as of earlier runs. That is possible only if later input can
            only have added to their origins; otherwise there is no answer.
    """

    transform: Transform
    vocab: DatasetVocabulary
    query_inputs: tuple[TransformRequestInput, ...]
    wanted_path: str
    output_path: str
    recorded_schema: DataSchema | None = None
    has_earlier: bool = False


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """An input column from which an output column is computed.

    Attributes:
        column: the output column.
        input: number of the input.
        source: the input column; None where it is not one of the input's, such as `valid_to`.
        is_copy: whether the values are copied from the input.
        through: the expressions in between, from the output on, as SQL.
        is_one_of: whether other rows of the output have another origin (UNION).
        branch: the branch of the rows that have this origin, where it is known.
    """

    column: str
    input: U64
    source: str | None
    is_copy: bool
    through: tuple[str, ...] = ()
    is_one_of: bool = False
    branch: U64 | None = None


@dataclass(frozen=True, slots=True)
class TraceResponseSuccess:
    """The answer has been written.

    Attributes:
        num_rows: number of rows of the answer.
        origins: the origins of all columns of the output.
        is_complete: False where earlier runs could not be traced, and nothing has been written.
    """

    num_rows: U64
    origins: tuple[ColumnOrigin, ...] = ()
    is_complete: bool = True


TraceResponse: TypeAlias = TraceResponseSuccess | TransformResponseInvalidQuery | TransformResponseInternalError


@runtime_checkable
class Tracer(Protocol):
    """The interface of engines that can trace rows."""

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return the input rows from which output rows were computed.

        Raises:
            EngineUnavailable: the engine cannot be reached.
        """
        ...
