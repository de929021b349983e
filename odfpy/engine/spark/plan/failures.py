"""Translation of Spark's exceptions: a user's mistake with its place in the text, or a failure of the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from odfpy.engine.spark.plan.catalyst import children, items
from odfpy.engine.spark.plan.functions import RANDOM, what_instead
from odfpy.engine.sql.projection import SPARK
from odfpy.engine.sql.source_text import SourceText, too_deep
from odfpy.errors import EngineError, InvalidQuery, NondeterministicQuery, OdfError, did_you_mean

_CONDITION = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_NONDETERMINISTIC = re.compile("NON_?DETERMINISTIC")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_ADVICE = re.compile(
    r" on search path \[.*?\]|\. Did you mean one of the following\? \[.*?\]|(?<=is malformed)\. Correct the value .*"
    r"|\. Use `try_\w+` .*|, and provide a mapping of .*|\. Please, fix `args` .*"
)
_MAX_COLUMNS: Final = 40
_OWN_PREFIX: Final = "__odf_"
_NAME = re.compile(r"`(?:[^`]|``)*`(?:\.`(?:[^`]|``)*`)*")
_POSITION = re.compile(r"; line \d+ pos \d+$")
_WINDOW = re.compile("name `(session_)?window`")
_OF_WINDOW = re.compile('Column expression "_w\\d+"')
_TIME_TRAVEL = re.compile("time[ _]travel", re.IGNORECASE)
HOW_TO_JOIN_VERSIONS = (
    "Name the table in `temporalTables`, and join with `AND facts.event_time >= versions.valid_from "
    "AND facts.event_time < versions.valid_to`."
)
_NO_WINDOW = "There is a window if GROUP BY makes one that fits: of a time column, with a duration such as '1 day'."
ORDER_THE_WINDOW: Final = "Write OVER (... ORDER BY ...); rows that are equal in it get a fixed order."
_FILE = re.compile(r"\bfile:/\S*[\w/]")
_SETTING = re.compile(r"\bspark\.[a-z]\w*(?:\.\w+)+")
_LONG_VALUE = re.compile(r"'([^']{200})[^']+'")
_MAX_LENGTH: Final = 4_000
"""The maximum number of characters of a message that are used."""
_DOTTED_TABLE: Final = "REQUIRES_SINGLE_PART_NAMESPACE"
_MORE_MEMORY: Final = (
    "Increase it with `odf config set engine.memory 4g`, or use smaller values and groups in the query."
)
NO_FILES: Final = "Use the names or aliases of tables; files cannot be read by path."
_WINDOW_WITHOUT_ORDER: Final = "WINDOW_FUNCTION_FRAME_NOT_ORDERED"
_TOO_COMPLEX: Final = "FAILED_TO_PARSE_TOO_COMPLEX"
_DISK: Final = ("No space left on device", "Disk quota exceeded", "Read-only file system")
_OUR_FAULT: Final = (
    "INTERNAL_ERROR",
    "PLAN_VALIDATION_FAILED",
    "FAILED_READ_FILE",
    "PATH_NOT_FOUND",
    "CANNOT_",
    "UNABLE_TO",
    "FILE_NOT_EXIST",
)
_OURS: Final = re.compile(r"[`\"]([ck]\d+|__odf_\w+)\b")
"""Names of columns that the engine adds to plans around a query."""

_REPORT: Final = "This is a bug of odf: please report it, with the query."
_NOT_OURS: Final = ("CANNOT_PARSE_", "CANNOT_RESOLVE_")

_HINTS: Final = {
    "TABLE_OR_VIEW_NOT_FOUND": NO_FILES,
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION": NO_FILES,
    "UNRESOLVED_ROUTINE": "Only Spark's built-in functions are available, no user-defined ones.",
    "AVRO_NOT_LOADED": "Functions of other packages are not available.",
    "UNBOUND_SQL_PARAMETER": "Write the value itself.",
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": what_instead(RANDOM),
    "UNRESOLVED_COLUMN": "Names of columns are case-sensitive: `Id` is not `id`.",
    "AMBIGUOUS_REFERENCE": "Qualify it with the alias of its table.",
    "MISSING_AGGREGATION": "Add it to GROUP BY, or aggregate it, for example with max(...).",
    "PARSE_SYNTAX_ERROR": "Write one SELECT in Spark SQL.",
    "DATATYPE_MISMATCH": "Convert it with CAST(... AS type).",
    "CANNOT_RESOLVE_STAR_EXPAND": "Name a table of FROM by its name or alias.",
    "CANNOT_PARSE_TIMESTAMP": "Use `try_to_timestamp`, which gives NULL instead.",
    "DIVIDE_BY_ZERO": "Use `try_divide`, which gives NULL instead.",
    "CAST_INVALID_INPUT": "Use `try_cast`, which gives NULL instead.",
    "CAST_OVERFLOW": "Use a wider type, or `try_cast`, which gives NULL instead.",
    "NUMERIC_VALUE_OUT_OF_RANGE": "Use a wider type, or `try_cast`, which gives NULL instead.",
    "ARITHMETIC_OVERFLOW": "Cast to a wider type, or use `try_add` and the like, which give NULL instead.",
}


@contextmanager
def spark_errors(sources: Sequence[SourceText]) -> Iterator[None]:
    """Convert all exceptions of Spark inside the block to an `OdfError`.

    Args:
        sources: texts of the queries that may be invalid; one during analysis, all when they run.

    Raises:
        InvalidQuery, NondeterministicQuery: a query is invalid, or the data does not fit it.
        EngineError: any other failure.
    """
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except OdfError:
        raise
    except RecursionError as error:
        raise too_deep() from error
    except Py4JJavaError as error:
        raise _translated(error.java_exception, sources) from error
    except PySparkException as error:
        origin = getattr(error, "_origin", None)
        raise (EngineError(f"Spark: {error}") if origin is None else _translated(origin, sources)) from error
    except (Py4JError, ConnectionError) as error:
        raise EngineError(f"The engine's Java process does not answer: {error}") from error


def cause_of(error: Exception) -> str:
    """Summarize an error in one line: the first line of a Java error."""
    return str(getattr(error, "java_exception", error)).strip().partition("\n")[0]


def _translated(exception: Any, sources: Sequence[SourceText]) -> OdfError:
    """Translate an error of Java: of the machine, of the engine, or of the query, with its place in the text."""
    if (failure := _resource_failure(exception)) is not None:
        return failure
    cause = _cause_with_condition(exception)
    message = _shortened(_message(cause))
    match = _CONDITION.match(message)
    condition = match.group(1) if match else ""
    is_analysis = cause.getClass().getSimpleName().endswith(("AnalysisException", "ParseException"))
    is_ours = condition.startswith(_OUR_FAULT) and not condition.startswith(_NOT_OURS)
    if (not condition and not is_analysis) or is_ours:
        return EngineError(f"Spark: {_FILE.sub('a file of the engine', message.splitlines()[0])}")
    if condition == _WINDOW_WITHOUT_ORDER:
        return _window_without_order(str(cause.getMessageParameters().get("wf_name")), sources)
    if condition == _DOTTED_TABLE:
        return _no_such_table(str(cause.getMessageParameters().get("identifier")), sources)
    if condition == _TOO_COMPLEX:
        return too_deep()
    sentence = _sentence(message[match.end() :] if match else message)
    if _names_of_the_engine(sentence, sources):
        return EngineError(f"Spark refuses a plan that the engine has made: {sentence}", hint=_REPORT)
    hint = next((text for name, text in _HINTS.items() if condition.startswith(name)), None)
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_ROUTINE", "PARSE_SYNTAX_ERROR")):
        hint = _suggestion(cause, condition, sources, str(hint), _columns(exception))
    if condition.startswith("UNRESOLVED_COLUMN") and _WINDOW.search(sentence):
        hint = _NO_WINDOW
    if _TIME_TRAVEL.search(message):
        hint = HOW_TO_JOIN_VERSIONS
    kind = NondeterministicQuery if _NONDETERMINISTIC.search(condition) else InvalidQuery
    return kind(f"{sentence or condition}{_place(cause, sources)}", hint=hint)


def _resource_failure(exception: Any) -> OdfError | None:
    """Return the error if Java lacked disk, memory or stack; None for other causes."""
    for current in _causes(exception):
        if words := next((words for words in _DISK if words in _message(current)), None):
            return EngineError(f"The engine cannot write its files: {words}")
        if current.getClass().getSimpleName() == "OutOfMemoryError":
            return EngineError(f"The engine's Java ran out of memory: {_message(current)}", hint=_MORE_MEMORY)
        if current.getClass().getSimpleName() == "StackOverflowError":
            return too_deep()
    return None


def _sentence(message: str) -> str:
    """Return the first line of a message of Spark without its state, position and advice."""
    sentence = _without_settings(_SQLSTATE.sub("", message).split("\n")[0]).strip().rstrip(".")
    return _OF_WINDOW.sub("PARTITION BY or ORDER BY of a window", _POSITION.sub("", _ADVICE.sub("", sentence)))


def _shortened(message: str) -> str:
    """Shorten a message, and the values that it quotes, which may have any length."""
    return _LONG_VALUE.sub(r"'\1...'", message)[:_MAX_LENGTH]


def _without_settings(sentence: str) -> str:
    """Cut a sentence off before the part that advises another setting of Spark."""
    setting = _SETTING.search(sentence)
    if setting is None:
        return sentence
    return sentence[: max(sentence.rfind(end, 0, setting.start()) for end in ".`") + 1]


def _names_of_the_engine(sentence: str, sources: Sequence[SourceText]) -> bool:
    """Return whether an error names columns that the engine has named, and no query."""
    if any("*" in source.text for source in sources):
        return "__odf_" in sentence  # it may belong to an input
    return any(not any(name in source.text for source in sources) for name in _OURS.findall(sentence))


def _suggestion(cause: Any, condition: str, sources: Sequence[SourceText], hint: str, columns: Sequence[str]) -> str:
    """Suggest a similar name for an unknown column, function or keyword, before another hint.

    Args:
        cause: message of Spark.
        condition: the kind of it.
        sources: the texts of the queries.
        hint: the other hint.
        columns: valid columns at that position.
    """
    named = cause.getMessageParameters()
    if condition.startswith("PARSE"):
        line, column = _line_of(cause)
        if line is None or len(sources) != 1:
            return hint
        return sources[0].misspelt_before(sources[0].position(line, column)) or hint
    if condition.startswith("UNRESOLVED_ROUTINE"):
        suggestion = did_you_mean(_last(named.get("routineName")), _functions_of_spark())
        return f"{suggestion} {hint}" if suggestion else hint
    known = re.findall(_NAME, str(named.get("proposal") or ""))
    last = {_last(path) for path in known}
    wanted = _last(named.get("objectName"))
    shown = f"{', '.join(columns[:_MAX_COLUMNS])}{', ...' if len(columns) > _MAX_COLUMNS else ''}"
    there_are = f"There are {shown}. {hint}" if columns else hint
    if wanted in last:  # of another table
        paths = (_with_dots(path, sources) for path in known if _last(path) == wanted)
        return f"Did you mean {' or '.join(paths)}?"
    return did_you_mean(wanted, last, otherwise=there_are) or hint


def _columns(exception: Any) -> list[str]:
    """Return the columns that an unresolved expression could have named; with their tables if names repeat."""
    analysis_errors = [
        cause for cause in _causes(exception) if cause.getClass().getSimpleName() == "ExtendedAnalysisException"
    ]
    plan = analysis_errors[0].plan().get() if analysis_errors and analysis_errors[0].plan().isDefined() else None
    while plan is not None and (unresolved := [child for child in children(plan) if not child.resolved()]):
        plan = unresolved[0]
    outputs = [] if plan is None else [items(child.output()) for child in children(plan)]
    columns = [column for output in outputs for column in output if not column.name().startswith(_OWN_PREFIX)]
    names = [column.name() for column in columns]
    if len(set(names)) == len(names):
        return [_quoted(name) for name in names]
    return [".".join(map(_quoted, [*items(column.qualifier())[-1:], column.name()])) for column in columns]


def _with_dots(path: str, sources: Sequence[SourceText]) -> str:
    """Return a path with its table's name as the query writes it: see `_with_plain_names` in `analysis`."""
    plain = path[1:].partition("`")[0]
    written = re.compile(re.escape(plain).replace("_", "[._]"))
    written_name = next((match.group() for source in sources if (match := written.search(source.text))), plain)
    return path.replace(plain, written_name, 1)


def _quoted(name: str) -> str:
    """Quote a name for Spark SQL."""
    return name if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) else SPARK.name(name)


def _last(path: Any) -> str:
    """Return the last name of a path."""
    return re.split(r"`?\.`?", str(path))[-1].strip("`")


def _functions_of_spark() -> list[str]:
    from pyspark import SparkContext

    registry = SparkContext._jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry  # type: ignore[union-attr]  # noqa: SLF001
    return [_last(name) for name in registry.builtin().listFunction().mkString(",").split(",")]


def _window_without_order(function: str, sources: Sequence[SourceText]) -> NondeterministicQuery:
    """Return the error for the first such call whose window shows no ORDER BY, or else for the first one."""
    call = rf"\b{re.escape(function)}\s*\("
    where = _first_in_text([rf"{call}[^()]*\)\s*over\s*\((?:(?!order\s+by)[^()])*\)", call], sources)
    message = f"`{function}` depends on the order of the rows, but its window has none{where}"
    return NondeterministicQuery(message, hint=ORDER_THE_WINDOW)


def _no_such_table(identifier: str, sources: Sequence[SourceText]) -> InvalidQuery:
    """Return the error for a name of three or more parts, which Spark takes for a table of a catalog."""
    name = identifier.replace("`", "")
    where = _first_in_text([r"`?\.`?".join(map(re.escape, name.split(".")))], sources)
    return InvalidQuery(f"`{name}` is neither an input nor an earlier step{where}", hint=NO_FILES)


def _first_in_text(patterns: Sequence[str], sources: Sequence[SourceText]) -> str:
    """Return the place of the first pattern that is found, for errors without a place."""
    places = (
        source.at(*match.span())
        for pattern in patterns
        for source in sources
        if (match := re.search(pattern, source.text, re.IGNORECASE)) is not None
    )
    return next(places, "")


def _cause_with_condition(exception: Any) -> Any:
    """Return the innermost exception that carries one of Spark's error conditions, or the outermost exception."""
    telling = exception
    for current in _causes(exception):
        if _CONDITION.match(_message(current)):
            telling = current
    return telling


def _causes(exception: Any) -> Iterator[Any]:
    """Yield an exception, its cause, and so on."""
    while exception is not None:
        yield exception
        exception = exception.getCause()


def _message(exception: Any) -> str:
    return str(exception.getMessage() or exception).strip()


def _place(exception: Any, sources: Sequence[SourceText]) -> str:
    """Return the place in the text, if Spark knows it: by the quoted fragment, or by line and column."""
    contexts = list(exception.getQueryContext()) if hasattr(exception, "getQueryContext") else []
    for context in contexts:
        if str(context.contextType()) != "SQL":
            continue
        start, end = int(context.startIndex()), int(context.stopIndex()) + 1
        for source in sources:
            if source.text[start:end] == context.fragment():
                return source.at(start, end)
    line, column = _line_of(exception)
    if line is not None and len(sources) == 1:
        return sources[0].at_line(line, column)
    return _place_of_words(exception, sources) or (sources[0].whole() if len(sources) == 1 else "")


def _place_of_words(exception: Any, sources: Sequence[SourceText]) -> str:
    """Return the place of the function or expression that an error names without a place."""
    named = exception.getMessageParameters() if hasattr(exception, "getMessageParameters") else {}
    if function := named.get("functionName"):
        return _first_in_text([rf"\b{re.escape(str(function))}(?=\s*\()"], sources)
    if table := named.get("targetString"):
        return _first_in_text([rf"{_words(table)}\.\*"], sources)
    if window := named.get("windowName"):
        return _first_in_text([rf"(?<=\bover\s){_words(window)}"], sources)
    if expression := named.get("expression") or named.get("colName"):
        return _first_in_text([_words(str(expression).strip('"`'))], sources)
    return ""


def _words(path: str) -> str:
    """Return a pattern for a name, with or without backquotes."""
    parts = (re.escape(part) for part in path.replace("`", "").split("."))
    return r"(?<![\w`])`?" + r"`?\.`?".join(parts) + r"(?!\w)`?"


def _line_of(exception: Any) -> tuple[int | None, int]:
    if not exception.getClass().getSimpleName().endswith(("AnalysisException", "ParseException")):
        return None, 0
    line, column = exception.line(), exception.startPosition()
    return (int(line.get()), int(column.get()) if column.isDefined() else 0) if line.isDefined() else (None, 0)
