"""Checks for sources that can never work, whatever the data, based on the manifest alone.

Nothing is executed or contacted. Checks that depend on the machine, its environment or the data are left to the pull,
and so are uncertain ones: a source that could work is never rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, TypeAlias

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.read_steps import ReadCsv, ReadJson, ReadNdJson, ReadStep
from odfpy.chain.sources import (
    EventTimeFromPath,
    FetchFilesGlob,
    FetchMqtt,
    FetchStep,
    FetchUrl,
    MergeAppend,
    MergeSnapshot,
    PrepDecompress,
    PrepPipe,
)
from odfpy.data.schemas import schema as types
from odfpy.data.schemas.schema import DataSchema, DataType
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import InvalidValue, OdfError, UsageError, did_you_mean

Path: TypeAlias = tuple[str | int, ...]

_TEMPLATE: Final = "${{"
_DEFAULT_NAMES: Final = ", ".join(f"`{name}`" for name in DEFAULT_VOCABULARY.columns)


@dataclass(frozen=True, slots=True)
class SourceFault:
    """A part of a source that cannot work.

    Attributes:
        path: keys and indices of the part, starting from the source.
        error: the error, with a hint.
    """

    path: Path
    error: OdfError


def check_source(source: SetPollingSource | AddPushSource, vocabulary: DatasetVocabulary) -> Iterator[SourceFault]:
    """Yield the faults of a source, in its order.

    Args:
        source: the source in its manifest.
        vocabulary: names of the system columns of its dataset.
    """
    if isinstance(source, SetPollingSource):
        yield from _in_fetch(source.fetch)
        for number, step in enumerate(source.prepare or ()):
            yield from _in_prepare(step, ("prepare", number))
    read = list(_in_read(source.read))
    yield from read
    if not read:
        yield from _in_merge(source, vocabulary)


def check_vocabulary(vocabulary: DatasetVocabulary) -> Iterator[SourceFault]:
    """Yield the conflicts between system columns of a dataset: two have the same name."""
    names = vocabulary.columns
    for number, name in enumerate(names):
        if name in names[:number]:
            hint = f"The defaults are {_DEFAULT_NAMES}."
            yield SourceFault((), InvalidValue(f"two system columns have the name {name!r}", hint=hint))


def _tried(path: Path, attempt: Callable[[], object]) -> Iterator[SourceFault]:
    """Yield a fault if the attempt fails."""
    try:
        attempt()
    except OdfError as error:
        yield SourceFault(path, error)


# --- Fetch, prepare --------------------------------------------------------------------------------------------------


def _in_fetch(step: FetchStep) -> Iterator[SourceFault]:
    if isinstance(step, FetchUrl):
        yield from _tried(("fetch", "url"), lambda: _check_url(step.url))
    if isinstance(step, FetchFilesGlob):
        yield from _tried(("fetch", "path"), lambda: _check_glob(step.path))
    if isinstance(step, FetchMqtt):
        if not 0 < step.port < 1 << 16:
            yield SourceFault(
                ("fetch", "port"), InvalidValue(f"{step.port} is not a port", hint="Ports are 1 to 65535.")
            )
        if not step.topics:
            yield SourceFault(("fetch", "topics"), InvalidValue("there is no topic", hint="`#` stands for all topics."))
    event_time = getattr(step, "event_time", None)
    if isinstance(event_time, EventTimeFromPath):
        yield from _in_event_time(event_time)


def _check_url(text: str) -> None:
    from odfpy.ingest.fetch.url import check_url
    from odfpy.ingest.templates import filled_in

    if not text:
        raise InvalidValue("an empty text is not a URL", hint="Write https://..., or file:folder/name.csv.")
    before = text.partition(_TEMPLATE)[0]
    if before == text or ":" in before:
        check_url(filled_in(text, "1"), text)


def _check_glob(path: str) -> None:
    if not path:
        raise InvalidValue("an empty path matches no file", hint="Write a pattern such as `in/*.csv`.")
    if "://" in path:
        raise InvalidValue(
            f"{path!r} is a URL: FilesGlob reads files of this machine",
            hint="Use `kind: Url`, or a path such as `in/*.csv`.",
        )
    if path.endswith("/"):
        raise InvalidValue(f"{path!r} matches folders, never a file", hint=f"Write {path + '*'!r} for the files in it.")


def _in_event_time(event_time: EventTimeFromPath) -> Iterator[SourceFault]:
    from odfpy.ingest.event_time import compile_pattern
    from odfpy.ingest.time_format import time_format

    yield from _tried(("fetch", "eventTime", "pattern"), lambda: compile_pattern(event_time))
    yield from _tried(("fetch", "eventTime", "timestampFormat"), lambda: time_format(event_time.timestamp_format))


def _in_prepare(step: PrepDecompress | PrepPipe, path: Path) -> Iterator[SourceFault]:
    from odfpy.ingest.prepare.decompress import check_decompress

    if isinstance(step, PrepDecompress):
        yield from _tried((*path, "subPath"), lambda: check_decompress(step))
    elif not step.command:
        hint = "`command` is a list: a program and its arguments."
        yield SourceFault((*path, "command"), UsageError("there is no command", hint=hint))


# --- Read ------------------------------------------------------------------------------------------------------------


def _in_read(step: ReadStep) -> Iterator[SourceFault]:
    from odfpy.ingest.read.csv_text import Dialect
    from odfpy.ingest.read.encodings import codec_of

    schema = None
    try:
        schema = _declared(step)
    except _InSchema as error:
        yield SourceFault(("read", *error.path), error.error)
    if isinstance(step, ReadCsv):
        alone = {
            "quote": ReadCsv(separator="\0", quote=step.quote, escape="\1"),
            "escape": ReadCsv(separator="\0", escape=step.escape),
            "separator": step,
        }
        for option, tried in alone.items():
            yield from _tried(("read", option), partial(Dialect.of, tried))
    if isinstance(step, ReadCsv | ReadJson | ReadNdJson):
        yield from _tried(("read", "encoding"), lambda: codec_of(step.encoding))
        yield from _in_time_formats(step, schema)


class _InSchema(Exception):
    """A fault in a schema."""

    def __init__(self, path: Path, error: OdfError) -> None:
        super().__init__(error.message)
        self.path = path
        self.error = error


def _declared(step: ReadStep) -> DataSchema | None:
    """Return the schema that a step declares.

    Raises:
        _InSchema: the schema is invalid, or has a column without a name.
    """
    from odfpy.data.schemas.arrow import to_arrow
    from odfpy.data.schemas.ddl import parse_ddl
    from odfpy.ingest.read import schema_of

    try:
        schema = schema_of(step)
        if schema is not None:
            to_arrow(schema)
            if "" in schema.names:
                raise InvalidValue("a column has no name", hint="Give it a name, even if no query uses it.")
    except OdfError as error:
        path: Path = ("schema",) if step.ddl_schema is None else ("ddlSchema",)
        bad = (at for at, line in enumerate(step.ddl_schema or ()) if any(_tried((), partial(parse_ddl, [line]))))
        raise _InSchema((*path, *islice(bad, 1)), error) from error
    return schema


def _in_time_formats(step: ReadCsv | ReadJson | ReadNdJson, schema: DataSchema | None) -> Iterator[SourceFault]:
    """Yield the invalid formats of times. A format is only checked if a column of the schema needs it."""
    from odfpy.ingest.time_format import time_format

    kinds = {type(_inner(field.type)) for field in schema.fields} if schema else set()
    if types.Date in kinds:
        yield from _tried(("read", "dateFormat"), lambda: time_format(step.date_format))
    if types.Timestamp in kinds:
        yield from _tried(("read", "timestampFormat"), lambda: time_format(step.timestamp_format))


def _inner(data_type: DataType) -> DataType:
    return data_type.inner if isinstance(data_type, types.Option) else data_type


# --- Merge -----------------------------------------------------------------------------------------------------------


def _in_merge(source: SetPollingSource | AddPushSource, vocabulary: DatasetVocabulary) -> Iterator[SourceFault]:
    """Yield faults for columns that the merge strategy names, but that the rows cannot have."""
    from odfpy.ingest.read import schema_of

    merge, schema = source.merge, schema_of(source.read)
    if isinstance(merge, MergeAppend):
        return
    if not merge.primary_key:
        hint = "List the key columns, or set `kind: Append`."
        yield SourceFault(("merge", "primaryKey"), InvalidValue("there is no primary key column", hint=hint))
    known: Sequence[str] | None = None if schema is None else schema.names
    if source.preprocess is not None:
        from odfpy.engine.sql.output_names import output_names

        known = output_names(source.preprocess, known)
    if known is None:
        return
    compared = (merge.compare_columns or ()) if isinstance(merge, MergeSnapshot) else ()
    always: dict[str, Sequence[str]] = {"compareColumns": (vocabulary.event_time_column,), "primaryKey": ()}
    for key, role, names in (
        ("primaryKey", "primary key", merge.primary_key),
        ("compareColumns", "compare", compared),
    ):
        for number, name in enumerate(names):
            if not _is_among(name, [*known, *always[key]], exactly=source.preprocess is None):
                yield SourceFault(("merge", key, number), _not_there(name, role, known, source))


def _is_among(name: str, known: Sequence[str], *, exactly: bool) -> bool:
    """Return whether a name is known. For queries, case is ignored: engines have their own rules."""
    return name in known if exactly else name.lower() in {column.lower() for column in known}


def _not_there(name: str, role: str, known: Sequence[str], source: Any) -> OdfError:
    where = "the schema of the read step" if source.preprocess is None else "the result of the preprocessing query"
    hint = did_you_mean(name, known, otherwise=f"It has: {', '.join(known) or 'no columns'}.")
    return InvalidValue(f"the {role} column {name!r} is not in {where}", hint=hint)
