"""DataFusion sessions in which only functions of their arguments exist, and DataFusion's errors as ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.arrow import plain_schema
from odfpy.data.retype import plain_batch
from odfpy.engine.datafusion.ethereum_functions import register_ethereum_functions
from odfpy.engine.datafusion.json_functions import register_json_functions
from odfpy.engine.source_text import SourceText
from odfpy.errors import InvalidQuery, NondeterministicQuery, OdfError, did_you_mean

if TYPE_CHECKING:
    from datafusion import DataFrame, SessionContext

REFUSED: Final[dict[str, str]] = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "today"), "reads the clock"),
    **dict.fromkeys(("random", "rand", "uuid"), "is random"),
    **dict.fromkeys(("input_file_name", "file_row_index"), "depends on how the data lies in files"),
    "version": "depends on the environment of the engine",
}
"""Functions that are taken out of the session; a test compares them with what DataFusion says of its own functions."""

_WITHOUT_PARENTHESES: Final = ("current_timestamp", "current_date", "current_time")
_FUNCTION = re.compile(r"Invalid function '([^']+)'")
_FIELD = re.compile(r"No field named \"?(\w+)\"?")
_PARSER_PLACE = re.compile(r"(?: at)? Line: (\d+), Column: (\d+)")
_PREFIX = re.compile(r"^(?:DataFusion error: |Error during planning: |SQL error: |Schema error: |Arrow error: )+")
_ADVICE = re.compile(r" You can use double quotes to refer to [^.]*(?:\.[^.]*)*? configuration\.")
_PARSER_ERROR = re.compile(r'^(?:ParserError|TokenizerError)\("(.*)"\)$', re.DOTALL)


def new_session(*, deterministic: bool) -> SessionContext:
    """A session in which rows keep their order: one partition, so that nothing runs beside something else.

    Args:
        deterministic: leave out the functions that are not.
    """
    from datafusion import SessionConfig, SessionContext

    config = SessionConfig().with_target_partitions(1)
    # Names are what is written, as in the reference implementation: `Id` without quotes is not `id`.
    context = SessionContext(config.set("datafusion.sql_parser.enable_ident_normalization", "false"))
    register_json_functions(context)
    register_ethereum_functions(context)
    if deterministic:
        for name in REFUSED:
            context.deregister_udf(name)
    return context


def quoted(name: str) -> str:
    """A name exactly as it is, dots and capitals included."""
    return '"' + name.replace('"', '""') + '"'


def name_rows(context: SessionContext, name: str, schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> None:
    """Let queries see rows under a name."""
    rows = list(batches) or [pa.RecordBatch.from_pylist([], schema=schema)]
    context.register_record_batches(quoted(name), [rows])


def run_query(context: SessionContext, query: str) -> DataFrame:
    """The result of one query, not computed yet; statements that change something are refused.

    Raises:
        Exception: whatever DataFusion raises; use it inside `datafusion_errors`.
    """
    from datafusion import SQLOptions

    options = SQLOptions().with_allow_ddl(allow=False).with_allow_dml(allow=False).with_allow_statements(allow=False)
    return context.sql_with_options(query, options)


def rows_in_order(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The rows of a result in plain layout, partition by partition: those of a UNION ALL come part by part."""
    schema = plain_schema(frame.schema())
    for partition in frame.execute_stream_partitioned():
        for batch in partition:
            rows = batch.to_pyarrow()
            if rows.num_rows:
                yield plain_batch(rows, schema)


@contextmanager
def datafusion_errors(source: SourceText) -> Iterator[None]:
    """Turn whatever DataFusion raises inside the block into our errors.

    Raises:
        NondeterministicQuery: a function that is left out.
        InvalidQuery: anything else, since DataFusion does not tell more.
        KeyboardInterrupt: the person has interrupted it.
    """
    try:
        yield
    except OdfError:
        raise
    except SystemError as error:
        # An interruption that arrives while Python is called back from native code comes out in this disguise.
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise error.__cause__ from None
        raise _translated(str(error), source) from error
    except Exception as error:  # DataFusion's Python binding has no exceptions of its own
        raise _translated(str(error), source) from error


def _translated(message: str, source: SourceText) -> OdfError:
    left_out = _left_out(message)
    if left_out is not None:
        return NondeterministicQuery(
            f"`{left_out}` {REFUSED[left_out]}{_place_of_word(left_out, source)}",
            hint="Take the value from a column of an input.",
        )
    text = message.rsplit("caused by", 1)[-1].strip()
    text = _ADVICE.sub("", _PREFIX.sub("", text))
    parser = _PARSER_ERROR.match(text)
    text = parser.group(1) if parser else text
    place = _PARSER_PLACE.search(text)
    where = source.at_line(int(place.group(1)), int(place.group(2)) - 1) if place else source.whole()
    sentence = " ".join(_PARSER_PLACE.sub("", text).split()).rstrip(".")
    field = _FIELD.search(sentence)
    if field is None or place:
        return InvalidQuery(sentence + where)
    sentence, _, known = sentence.partition(". Valid fields are ")
    names = [name.rpartition(".")[2] for name in known.rstrip(".").split(", ")]
    hint = did_you_mean(field.group(1), names, otherwise=f"There are {known}." if known else None)
    return InvalidQuery(sentence + _place_of_word(field.group(1), source), hint=hint)


def _left_out(message: str) -> str | None:
    function, field = _FUNCTION.search(message), _FIELD.search(message)
    if function is not None and function.group(1) in REFUSED:
        return function.group(1)
    return field.group(1) if field is not None and field.group(1) in _WITHOUT_PARENTHESES else None


def _place_of_word(word: str, source: SourceText) -> str:
    found = re.search(rf"\b{word}\b", source.text, re.IGNORECASE)
    return source.whole() if found is None else source.at(*found.span())
