"""Requests to trace rows of an output to rows of the inputs, and the engine's responses (odfpy).

The rows that are asked about come in a file, and so do those that they are made of. In the columns of the first,
`WANTED` numbers the rows, `WEIGHT` is 1 or, for a row that takes another one back, -1; the others are those of the
output. The second has one row for each row of an input that one of them is made of: the number, `WAY`, which tells
several equal rows of the result apart, the number of the input, the offset there, and `BRANCH`, which says through
which branch of the query the row came: its readings of inputs are numbered from left to right. It is -1 where that is
not known.
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
    """Asks which rows of the inputs rows of an output are made of.

    Attributes:
        transform: the queries.
        vocab: the system columns of the output.
        query_inputs: the inputs as they were when the rows were made: interval, history and watermarks are those of
            the run that made them. Row by row, the interval may be that of several runs.
        wanted_path: a Parquet file with the rows.
        output_path: where to put the answer, an Arrow IPC stream.
        recorded_schema: schema of the output.
        has_earlier: whether some of the rows are asked about as of earlier runs. That does only if what came later can
            have done no more than add to what rows are made of; else there is no answer.
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
    """A column of an input from which one of the output comes.

    Attributes:
        column: of the output.
        input: number of the input.
        source: the column there; None where it is none that the input has, such as `valid_to`.
        is_copy: whether the values are those of the input.
        through: the expressions on the way, from the output on, as SQL.
        is_one_of: whether other rows of the output have it from elsewhere (UNION).
        branch: the branch through which those come that have it from here, where that is known of rows.
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
        num_rows: of the answer.
        origins: of all columns of the output.
        is_complete: False where there is no answer for rows of earlier runs, and none has been written.
    """

    num_rows: U64
    origins: tuple[ColumnOrigin, ...] = ()
    is_complete: bool = True


TraceResponse: TypeAlias = TraceResponseSuccess | TransformResponseInvalidQuery | TransformResponseInternalError


@runtime_checkable
class Tracer(Protocol):
    """An engine that knows where rows come from."""

    def trace(self, request: TraceRequest) -> TraceResponse:
        """Return which rows of the inputs rows of an output are made of.

        Raises:
            EngineUnavailable: the engine cannot be reached.
        """
        ...
