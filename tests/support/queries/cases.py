"""Cases of queries: text, inputs divided into pulls, and the output of each pull, as small readable tables.

A table has one row per line: operation type, event time, then the columns, separated by blanks; `-` is NULL, lists and
structs are JSON without blanks. The files are YAML in which everything is text.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timezone
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import yaml
from support.engine.requests import Source, rows_of, success, transform_request

from odfpy.engine.arrangement import ArrangementManifest
from odfpy.engine.contract import (
    SqlRequest,
    SqlResponseSuccess,
    TransformRequest,
    TransformResponse,
    TransformResponseNeedsHistory,
)
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.incremental.state import worth_arranging
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK

CORPUS = Path(__file__).resolve().parents[2] / "engine_queries" / "corpus"
LOCK = CORPUS / "hashes.yaml"
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

Row = tuple[Any, ...]
_SIMPLE = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "float": pa.float32(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ms", "UTC"),
}


@dataclass(frozen=True)
class Pull:
    """The input that arrives between two runs, and the output of the second one.

    Attributes:
        rows: new rows by input.
        watermarks: watermarks by input; others are unchanged.
        output: the lines of the table that is emitted.
        reaches: the watermark of the output.
    """

    rows: Mapping[str, Sequence[Row]]
    watermarks: Mapping[str, str]
    output: Sequence[str] = ()
    reaches: str | None = None


@dataclass(frozen=True)
class Case:
    """A transform with its inputs.

    Attributes:
        closed: the rows visible to the oracle, as SQL over an input, over a step (by their names) or over the `result`;
            `:watermark` is the minimum of the watermarks, `:a` that of the input `a`.
        columns: names of the columns of the output, in their order.
    """

    name: str
    about: str
    steps: Sequence[tuple[str | None, str]]
    inputs: Mapping[str, Sequence[pa.Field]]
    closed: Mapping[str, str]
    pulls: Sequence[Pull]
    columns: Sequence[str] = ()

    def watermarks(self, count: int) -> dict[str, str]:
        """Return the watermarks after the first pulls."""
        known: dict[str, str] = {}
        for pull in self.pulls[:count]:
            known |= pull.watermarks
        return known


@dataclass(frozen=True)
class Made:
    """The result of a pull."""

    rows: Sequence[Row]
    lines: Sequence[str]
    columns: Sequence[str]
    reaches: str | None
    logical_hash: str | None


# --- Files ------------------------------------------------------------------------------------------------------------


@cache
def corpus() -> tuple[Case, ...]:
    """Return all cases, in the order of their files; each process that runs tests needs them for several modules."""
    return tuple(case for path in sorted(CORPUS.glob("[0-9]*.yaml")) for case in read_cases(path))


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of a file."""
    for text in yaml.load_all(path.read_text("utf-8"), _LOADER):
        inputs = {
            alias: [pa.field(name, type_of(kind)) for name, kind in of.items()] for alias, of in text["inputs"].items()
        }
        steps = text["query"] if isinstance(text["query"], dict) else {"": text["query"]}
        pulls = [
            Pull(
                {
                    alias: [parsed(line, fields) for line in lines(pull.get(alias, ""))]
                    for alias, fields in inputs.items()
                },
                pull.get("watermarks", {}),
                lines(pull.get("output", "")),
                pull.get("reaches"),
            )
            for pull in text["pulls"]
        ]
        yield Case(
            text["name"],
            text["about"],
            [(alias or None, query) for alias, query in steps.items()],
            inputs,
            text.get("closed", {}),
            pulls,
            text.get("columns", "").split(),
        )


def lines(table: str) -> list[str]:
    """Return the lines of a table, with single blanks."""
    return [" ".join(line.split()) for line in table.splitlines() if line.strip()]


def type_of(kind: str) -> pa.DataType:
    """Return a type by its name in SQL."""
    if kind.startswith("array<"):
        return pa.list_(type_of(kind[6:-1]))
    if found := re.fullmatch(r"decimal\((\d+),(\d+)\)", kind):
        return pa.decimal128(int(found[1]), int(found[2]))
    return _SIMPLE[kind]


def parsed(line: str, fields: Sequence[pa.Field]) -> Row:
    """Return a row of an input."""
    op, event_time, *values = line.split()
    return (op, instant(event_time), *(_value(text, f.type) for text, f in zip(values, fields, strict=True)))


def instant(text: str) -> datetime:
    """Return a time in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def _value(text: str, kind: pa.DataType) -> Any:
    if text == "-":
        return None
    if pa.types.is_list(kind):
        return json.loads(text)
    if pa.types.is_timestamp(kind):
        return instant(text)
    if pa.types.is_date(kind):
        return date.fromisoformat(text)
    if pa.types.is_boolean(kind):
        return text == "true"
    if pa.types.is_decimal(kind):
        return Decimal(text)
    return pa.scalar(text).cast(kind).as_py()


def shown(value: Any) -> str:
    """Format a value as in the tables."""
    if value is None:
        return "-"
    if isinstance(value, (list, dict)):
        return json.dumps(_plain(value), separators=(",", ":")).replace(" ", "_")
    plain = _plain(value)
    return str(plain).lower() if isinstance(value, bool) else str(plain).replace(" ", "_")


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        text = value.astimezone(timezone.utc).replace(tzinfo=None).isoformat(timespec="milliseconds")
        return text.removesuffix(".000").removesuffix(":00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    return value


# --- Running ----------------------------------------------------------------------------------------------------------


INTERPRETED = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}
"""Settings with which Spark interprets plans: the same rows, without compiling small queries."""
QUICK = {**INTERPRETED, "spark__sql__shuffle__partitions": "1"}
"""Settings for queries that are about something else than how Spark works."""


class Tuned:
    """A session whose requests have other settings, as on another machine.

    Attributes:
        sessions: those of the requests so far.
    """

    def __init__(self, spark: Any, **settings: Any) -> None:
        self.sessions: list[Any] = []
        self._spark = spark
        self._settings = {name.replace("__", "."): str(value) for name, value in settings.items()}

    def newSession(self) -> Any:  # noqa: N802 (Spark's name)
        """Return a session for one request."""
        session = self._spark.newSession()
        for name, value in self._settings.items():
            session.conf.set(name, value)
        self.sessions.append(session)
        return session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)


@dataclass
class Runner:
    """Runs the pulls of a case one after the other, as the coordinator does.

    Attributes:
        write: options of the slices' Parquet writer.
        rows_in_one_task: as for the engine.
        arranged: whether to look up earlier rows by key where possible.
        looked_up: number of pulls that looked up rows.
    """

    spark: Any
    case: Case
    folder: Path
    write: Mapping[str, Any] = field(default_factory=dict)
    rows_in_one_task: int = ROWS_IN_ONE_TASK
    arranged: bool = False
    looked_up: int = 0

    def __post_init__(self) -> None:
        self.sources = {
            alias: Source(self.folder, alias, fields, write=self.write) for alias, fields in self.case.inputs.items()
        }
        self.known: dict[str, str] = {}
        self.next_offset = 0
        self.pulls = 0
        self.checkpoint: str | None = None
        self.arrangement: Path | None = None
        self._run_to = dict.fromkeys(self.sources, 0)
        self._known_then: dict[str, str] = {}

    def arrive(self, pull: Pull) -> None:
        """Add new input, in one block for each input."""
        for alias, rows in pull.rows.items():
            if rows:
                self.sources[alias].add(rows, zulu(self.known.get(alias)), commit=self.pulls)
        self.known = self.known | dict(pull.watermarks)

    def pull(self, pull: Pull) -> Made:
        """Add new input, and run the engine."""
        self.arrive(pull)
        return self.run()

    def run(self) -> Made:
        """Run the engine over the current input; history is provided on request."""
        folder = self.folder / f"pull-{self.pulls}"
        folder.mkdir()
        self.pulls += 1
        before, self._known_then = self._known_then, self.known
        starts, self._run_to = self._run_to, {alias: source.end for alias, source in self.sources.items()}
        for history in (False, True):
            inputs = [
                source.input(
                    starts[alias],
                    watermark=zulu(self.known.get(alias)),
                    prev_watermark=zulu(before.get(alias)),
                    history=history,
                )
                for alias, source in self.sources.items()
            ]
            request = transform_request(folder, self.case.steps, *inputs, next_offset=self.next_offset)
            request = replace(request, prev_checkpoint_path=self.checkpoint)
            if self.arranged:
                request = self._with_arrangement(request)
            with mock.patch.multiple(worth_arranging, MIN_ROWS=0, WORTH=0):
                response = self.respond(request)
            if not isinstance(response, TransformResponseNeedsHistory):
                break
        made = success(response)
        if self.arranged:
            self._take_over(Path(request.new_arrangement_path or ""))
        self.next_offset += sum(one.offset_interval.end - one.offset_interval.start + 1 for one in made.slices)
        self.checkpoint = request.new_checkpoint_path if Path(request.new_checkpoint_path).exists() else None
        rows = rows_of(response)
        names = made.output_schema.names[3:]
        reaches = None if made.new_watermark is None else shown(made.new_watermark.to_datetime())
        hashed = str(made.slices[0].logical_hash) if made.slices else None
        return Made(rows, [line_of(row) for row in rows], names, reaches, hashed)

    def _with_arrangement(self, request: TransformRequest) -> TransformRequest:
        before = str(self.arrangement) if self.arrangement else None
        return replace(
            request,
            prev_arrangement_path=before,
            new_arrangement_path=str(Path(request.new_data_path).with_name("arrangement")),
        )

    def _take_over(self, made: Path) -> None:
        """Pass the state left by the engine to the next pull."""
        manifest = ArrangementManifest.read(made)
        if manifest is not None and self.arrangement is not None:
            before = ArrangementManifest.read(self.arrangement)
            kept = {one.name: one for one in before.arranged if one.runs} if before is not None else {}
            self.looked_up += any(one.name in kept and one.unused == 0 and one.runs for one in manifest.arranged)
            for name in manifest.files:
                if not (made / name).exists():
                    shutil.copyfile(self.arrangement / name, made / name)
        self.arrangement = made if manifest is not None else None

    def respond(self, request: TransformRequest) -> TransformResponse:
        """Return the response of the engine."""
        return operations.transform(self.spark, request, rows_in_one_task=self.rows_in_one_task)


def answer_of(spark: Any, query: str, source: Source, out: Path) -> list[dict[str, Any]]:
    """Return the rows of an ad hoc query, through a file."""
    answer = operations.sql(spark, SqlRequest(query, (source.table(),), str(out)))
    assert isinstance(answer, SqlResponseSuccess), answer
    with pa.ipc.open_stream(out.read_bytes()) as stream:
        return stream.read_all().to_pylist()  # type: ignore[no-any-return]


def pull_both(one: Runner, other: Runner, pulls: Iterable[Pull]) -> None:
    """Run the same pulls in two ways, and compare after each."""
    for pull in pulls:
        wanted, found = one.pull(pull), other.pull(pull)
        assert (found.lines, found.logical_hash, found.reaches) == (wanted.lines, wanted.logical_hash, wanted.reaches)


def line_of(row: Row) -> str:
    """Format an output row as in the tables."""
    return " ".join([row[0], *(shown(value) for value in row[1:])])


def zulu(text: str | None) -> str | None:
    """Return a time in UTC, as timestamps are written."""
    return None if text is None else text + "Z"


def run_case(spark: Any, case: Case, folder: Path, **options: Any) -> list[Made]:
    """Return all pulls of a case."""
    runner = Runner(spark, case, folder, **options)
    return [runner.pull(pull) for pull in case.pulls]


def locked() -> dict[str, list[str]]:
    """Logical hashes of the slices of each case, `none` for a pull without rows."""
    if not LOCK.exists():
        return {}
    found: dict[str, list[str]] = yaml.safe_load(LOCK.read_text("utf-8"))
    return found
