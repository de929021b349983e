"""Queries for Spark without a sandbox: neither analyzing nor running them opens a file, an address or a program."""

from __future__ import annotations

import itertools
import re
import socket
import struct
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request, required
from support.engine.spark_limits import LACKING
from support.processes.reaching import Watch

from odfpy.dataset.transform import TransformSql
from odfpy.engine.contract import (
    PreprocessRequest,
    SqlRequest,
    TransformResponseInvalidQuery,
)
from odfpy.engine.spark.analysis.analysis import analyze_query
from odfpy.engine.spark.analysis.options import OPTIONS
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.execution.preprocess import preprocess
from odfpy.engine.spark.plan.catalyst import Catalyst
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.function_names import FUNCTIONS, REFUSED_NAMES, TABLE_FUNCTIONS
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.handover import hand_over
from odfpy.engine.sql.source_text import MAX_LEVELS, SourceText
from odfpy.errors import OdfError

pytestmark = pytest.mark.spark

XSD = "from_xml('<a>1</a>', 'a int', map('rowValidationXSDPath', '{to}'))"
SAMPLE = "schema_of_xml('<a>1</a>', map('rowValidationXSDPath', '{to}'))"
DTD = '<!DOCTYPE a [<!ENTITY e SYSTEM "{to}">]><r><a>&e;</a></r>'
MADE_UP = '{{"type":"udt","class":"org.apache.spark.ml.linalg.VectorUDT","pyClass":null,"sqlType":"string"}}'

REFUSED = {
    # Evaluated while Spark analyzes.
    "VALUES": f"select * from values ({XSD})",
    "a schema in VALUES": f"select * from values ({SAMPLE})",
    "range": f"select * from range(length({SAMPLE}))",
    "LIMIT": f"select * from t limit length({SAMPLE})",
    "OFFSET": f"select * from t offset length({SAMPLE})",
    "a schema that is made": f"select from_json(name, concat('a ', {SAMPLE})) from t",
    "options that are made": "select from_xml('<a/>', 'a int', map(concat('rowValidation', 'XSDPath'), '{to}'))",
    "options from a map of arrays": "select from_xml('<a/>', 'a int', map_from_arrays(array('rowTag'), array('{to}')))",
    "options from a column": "select from_xml(*) from (select '<a/>', 'a int', map('rowValidationXSDPath', '{to}'))",
    "another case": "select from_xml('<a/>', 'a int', map('ROWvalidationXSDpath', '{to}'))",
    "to_xml": "select to_xml(struct(1 as a), map('rowValidationXSDPath', '{to}'))",
    "an option nobody knows": "select from_json('1', 'int', map('path', '{to}'))",
    "a class as codec": "select from_json('1', 'a int', map('compression', 'java.lang.Runtime'))",
    "a class as type": f"select from_json('1', '{MADE_UP}')",
    "a class as type, escaped": 'select from_json(\'1\', r\'{{"type":"\\u0075dt","class":"java.lang.Runtime"}}\')',
    "a class as type of a variant": f"select variant_get(parse_json('1'), '$', '{MADE_UP}')",
    "a schema of Avro": "select from_avro(cast(name as binary), '{to}') from t",
    "options of Avro": "select from_avro(cast(name as binary), '\"int\"', map('avroSchemaUrl', '{to}')) from t",
    "a descriptor": "select from_protobuf(cast(name as binary), 'A', '{to}') from t",
    "a descriptor to write": "select to_protobuf(struct(id), 'A', '{to}') from t",
    # Where nobody would look.
    "a subquery": f"select (select {XSD})",
    "EXISTS": f"select * from t where exists (select {XSD})",
    "IN": f"select * from t where id in (select length({SAMPLE}))",
    "LATERAL": f"select * from t, lateral (select {XSD})",
    "WITH in a subquery": f"select (with a as (select {XSD} as x) select max(x) from a)",
    "WINDOW that nobody uses": f"select * from t window w as (order by {XSD})",
    "FILTER": f"select count(*) filter (where {SAMPLE} is null) from t",
    "PIVOT": f"select * from t pivot (max(name) for id in (length({SAMPLE})))",
    "a lambda": f"select transform(array(1), x -> {SAMPLE})",
    "SET of a pipe": f"from t |> set name = {SAMPLE}",
    "EXTEND of a pipe": f"from t |> extend {SAMPLE} as x",
    "AGGREGATE of a pipe": f"from t |> aggregate max({SAMPLE})",
    "JSON_TABLE": f"select * from json_table({SAMPLE}, '$[*]' columns (a int path '$.a'))",
    "UNNEST": f"select * from unnest(array({SAMPLE}))",
    "LATERAL VIEW": f"select * from t lateral view explode(array({SAMPLE})) as x",
    "a hint": f"select /*+ REPARTITION(3, {SAMPLE}) */ * from t",
    "GROUPING SETS": f"select 1 from t group by grouping sets (({SAMPLE}))",
    # Programs, and what is not the query's.
    "a program": "select transform(id) using 'cat {to}' as x from t",
    "a program in a subquery": "select (select max(x) from (select transform(id) using 'cat {to}' as x from t))",
    "a program in EXISTS": "select * from t where exists (select transform(id) using 'cat {to}' as x from t)",
    "Java": "select reflect('java.nio.file.Files', 'readString', '{to}')",
    "Java by its full path": "select system.builtin.java_method('java.lang.System', 'getenv', 'HOME')",
    "Java by IDENTIFIER": "select identifier('reflect')('java.lang.System', 'getenv', '{to}')",
    "Java by an expression": "select identifier('ref' || 'lect')('java.lang.System', 'getenv', '{to}')",
    "a generator of Java": "select * from t lateral view reflect('java.lang.System', 'getenv', '{to}') as x",
    "a path": "select * from parquet.`{to}`",
    "text": "select * from text.`{to}`",
    "a source of data": "select * from read_files('{to}')",
    "a source of data in Python": "select * from python('{to}')",
    "a stream": "select * from stream t",
    "options of a table": "select * from t with (path = '{to}')",
    "a table by an expression": "select * from identifier('t' || '')",
    "the session's name": "select * from system.session.t",
    "another request's log": "select * from __odf_log_0",
    "where files lie": "select input_file_name() from t",
    "parts of files": "select input_file_block_start() from t",
    "metadata of files": "select _metadata.file_path from t",
    "logs of programs": "select * from python_worker_logs()",
    "EXECUTE IMMEDIATE": "execute immediate 'select 1'",
    "a script": "begin select {0}; end",
    "a function that is not there": "select nosuch('{to}')",
}
READ = {
    "xpath": f"select xpath_string('{DTD}', 'r/a')",
    "xpath with a DTD": "select xpath_string('<!DOCTYPE a SYSTEM \"{to}\"><a>x</a>', 'a')",
    "xpath that includes": "select xpath('<a xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"{to}\"/></a>', 'a')",
    "xpath of another document": "select xpath_string('<a/>', 'document(\"{to}\")')",
    "from_xml": f"select from_xml('{DTD}', 'a string')",
    "from_xml with a DTD": "select from_xml('<!DOCTYPE r SYSTEM \"{to}\"><r><a>1</a></r>', 'a string')",
    "from_xml that names a schema": "select from_xml('<r xsi:noNamespaceSchemaLocation=\"{to}\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\"><a>1</a></r>', 'a string')",
    "schema_of_xml": f"select schema_of_xml('{DTD}')",
    "parse_url": "select parse_url('{to}', 'HOST')",
}  # fmt: skip
"""Queries that may run, with data that would like to reach out."""


class World:
    """Queries of strangers over one table."""

    def __init__(self, spark: Any, watch: Watch) -> None:
        self.spark = spark
        self.watch = watch
        self._catalyst = Catalyst(request_session(spark))
        rows = self._catalyst.spark.createDataFrame([(1, "a")], "id int, name string")
        self._catalyst.name_view("t", self._catalyst.plan(rows))

    def run(self, query: str, *, by_jobs: bool = True) -> str:
        """What comes of a query that is analyzed and, if it may be, run, in words.

        Without jobs, Spark's optimizer makes the row of a query of constants, which takes less time.
        """
        source = SourceText(query)
        try:
            with spark_errors([source]):
                frame = self._catalyst.dataframe(analyze_query(self._catalyst, source, ["t"]))
                if not by_jobs:
                    plan: str = frame._jdf.queryExecution().optimizedPlan().toString()
                    return re.sub(r"#\d+", "", plan)
                rows = frame.collect()
        except OdfError as error:
            return f"{type(error).__name__} {error.code} {error.message}"
        except Exception as error:  # noqa: BLE001  of PySpark, from what is run
            return f"{type(error).__name__} {str(error).splitlines()[0]}"
        return str(rows)

    def targets(self) -> tuple[str, ...]:
        """What a query would like to reach."""
        return self.watch.url, str(self.watch.pipe), f"file://{self.watch.pipe}"


@pytest.fixture(scope="module")
def world(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Watch(tmp_path_factory.mktemp("traps")) as watch:
        yield World(spark, watch)


@pytest.fixture(autouse=True)
def nothing_is_reached(world: World) -> Iterator[None]:
    world.watch.caught.clear()
    yield
    assert world.watch.caught == []


def filled(query: str, to: str) -> str:
    return query.replace("{to}", to).replace("{{", "{").replace("}}", "}")


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_reach_out_is_refused_before_it_is_analyzed(world: World, name: str) -> None:
    for target in world.targets():
        assert re.match("InvalidQuery|NondeterministicQuery", found := world.run(filled(REFUSED[name], target))), found


@pytest.mark.parametrize("name", READ)
def test_data_reaches_nothing(world: World, name: str) -> None:
    for target in world.targets():
        world.run(filled(READ[name], target))
    there, missing = str(world.watch.there), str(world.watch.missing)
    answers = [
        world.run(filled(READ[name], f"file://{path}")).replace(path, "...").replace(world.watch.folder.name, "...")
        for path in (there, missing)
    ]
    assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def roads(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Every way by which a query of somebody else reaches Spark."""
    folder = tmp_path_factory.mktemp("roads")
    source = Source(folder, "t", (required("id", pa.int64()), pa.field("name", pa.string())))
    source.add([("+A", "2024-01-01T00:00:00Z", 1, "a")])
    tables = hand_over({"t": pa.table({"id": [1], "name": ["a"]})}, folder)

    def run(query: str) -> list[Any]:
        ingest = PreprocessRequest(TransformSql("spark", query=query).normalized(), tables, str(folder / "out"))
        return [
            operations.sql(spark, SqlRequest(query, (source.table(),), str(folder / "result"))),
            operations.analyze(spark, analyze_request(query, source)),
            operations.analyze(spark, analyze_request([("first", query), (None, "select * from first")], source)),
            preprocess(spark, ingest),
        ]

    return run


@pytest.mark.parametrize("name", ["VALUES", "LIMIT", "a subquery", "a program in EXISTS", "a descriptor"])
def test_no_road_leads_out(world: World, roads: Any, name: str) -> None:
    for answer in roads(filled(REFUSED[name], world.watch.url)):
        assert isinstance(answer, TransformResponseInvalidQuery), answer


_MAX_ARGUMENTS = 3

# --- Every function ---------------------------------------------------------------------------------------------------


def registered(spark: Any, kind: str) -> set[str]:
    registry = getattr(spark._jvm.org.apache.spark.sql.catalyst.analysis, kind).builtin()
    return {name.removeprefix("system.builtin.") for name in registry.listFunction().mkString("\n").split("\n")}


def test_every_function_of_spark_is_let_in_or_refused_by_name(spark: Any) -> None:
    """A new Spark may bring functions: each must be put into one of the lists."""
    functions = FUNCTIONS | (REFUSED_NAMES.keys() - {"python_worker_logs"})
    assert registered(spark, "FunctionRegistry") == functions - LACKING
    assert registered(spark, "TableFunctionRegistry") == (TABLE_FUNCTIONS | {"python_worker_logs"}) - LACKING
    assert FUNCTIONS.isdisjoint(REFUSED_NAMES)


@pytest.mark.attack
def test_no_function_reaches_out_by_any_argument(world: World) -> None:
    """Each with texts that name an address or a file, at every place, and as the value of every option."""
    texts = [world.watch.url, f"file://{world.watch.pipe}", filled(DTD, world.watch.url)]
    for name in sorted(FUNCTIONS):
        for count in range(_MAX_ARGUMENTS + 1):
            for first in range(len(texts) if count else 1):
                values = [texts[(first + at) % len(texts)] for at in range(count)]
                world.run(f"select `{name}`({', '.join(map(repr, values))})", by_jobs=False)
        assert world.watch.caught == [], name
    for name in sorted(TABLE_FUNCTIONS):
        for count, text in itertools.product(range(1, 4), texts):
            world.run(f"select * from `{name}`({', '.join([repr(text)] * count)})")
        assert world.watch.caught == [], name


@pytest.mark.attack
def test_no_function_tells_which_files_there_are(world: World) -> None:
    """Whether it fails, and how, is the same for a file that is there and one that is not."""
    told = []
    for name, count in itertools.product(sorted(FUNCTIONS), range(1, _MAX_ARGUMENTS + 1)):
        answers = set()
        for path in (world.watch.there, world.watch.missing):
            found = world.run(f"select `{name}`({', '.join([repr(str(path))] * count)}) is null", by_jobs=False)
            answers.add(re.sub(re.escape(path.stem), "...", found, flags=re.IGNORECASE))
        if len(answers) > 1:
            told.append(answers)
    assert told == []


def test_no_option_reaches_out_by_its_value(world: World) -> None:
    for kind, options in OPTIONS.items():
        for option in sorted(options):
            world.run(f"select from_{kind}('<a>1</a>', 'a int', map('{option}', '{world.watch.url}'))")


# --- Depth ------------------------------------------------------------------------------------------------------------

DEEP = {
    "calls": lambda n: f"select {'abs(' * n}id{')' * n} from t",
    "sums": lambda n: f"select {'+'.join(['id'] * n)} from t",
    "signs": lambda n: f"select {'- ' * n}id from t",
    "cases": lambda n: f"select {'case when id > 1 then ' * n}1{' end' * n} from t",
    "queries in FROM": lambda n: f"select * from {'(select * from ' * n}t{')' * n}",
    "queries as values": lambda n: f"select {'(select ' * n}1{')' * n} from t",
    "pipes": lambda n: f"from t {'|> where id > 1 ' * n}",
    "lambdas": lambda n: f"select {'transform(array(1), x -> ' * n}1{')' * n} from t",
    "types": lambda n: f"select cast(null as {'array<' * n}int{'>' * n}) from t",
}


@pytest.mark.parametrize("levels", [MAX_LEVELS + 50, 40 * MAX_LEVELS])
@pytest.mark.parametrize("shape", DEEP)
def test_a_query_that_nests_too_deeply_is_refused_in_plain_words(world: World, shape: str, levels: int) -> None:
    found = world.run(DEEP[shape](levels))
    assert found.startswith("InvalidQuery E501 "), found
    assert "StackOverflow" not in found


@pytest.mark.parametrize("shape", ["calls", "sums", "pipes"])
def test_and_so_it_is_by_every_road(roads: Any, shape: str) -> None:
    for answer in roads(DEEP[shape](MAX_LEVELS + 50)):
        assert isinstance(answer, TransformResponseInvalidQuery), answer


def test_what_nests_as_people_write_it_is_answered(world: World) -> None:
    for shape in ("calls", "sums", "cases"):
        assert world.run(DEEP[shape](60)).startswith("[Row("), shape


# --- Who listens ------------------------------------------------------------------------------------------------------


def test_java_resolves_nothing_that_xml_names(spark: Any) -> None:
    java = spark._jvm.java.lang.System
    for kind in ("DTD", "Schema", "Stylesheet"):
        assert java.getProperty(f"javax.xml.accessExternal{kind}") == ""


def test_ports_of_spark_say_nothing_to_who_has_no_secret(spark: Any) -> None:
    """Any user of the machine can connect where there is no namespace of its own."""
    blocks = spark._jsc.sc().getExecutorMemoryStatus().keys().mkString(",")
    ports = {int(spark.sparkContext.getConf().get("spark.driver.port")), int(blocks.rpartition(":")[2])}
    assert len(ports) == 2
    for port in ports:
        payload = bytes(40)  # which Java would read as an object of anybody's
        body = struct.pack("!bqi", 3, 1, len(payload)) + payload  # a call in Spark's transport
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(struct.pack("!q", 8 + len(body)) + body)
            answer = connection.recv(1000)
        assert b"Expected SaslMessage" in answer, answer
        assert b"ObjectInputStream" not in answer
