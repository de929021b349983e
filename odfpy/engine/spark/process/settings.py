"""Settings of Spark and its JVM that a result could depend on, all pinned (ADR 0013, "Determinism").

`SETTINGS` decide what a query means; their digest is part of the engine's version, so that `odf verify` can tell when
a dataset needs another engine. `TUNING` only decides how fast it is, and may differ from machine to machine.
"""

from __future__ import annotations

import hashlib
from typing import Final

ENGINE_RELEASE: Final = 7
"""Counts up whenever this engine gives other results for the same query, inputs and Spark."""

SETTINGS: Final[dict[str, str]] = {
    # The machine's zone must not leak into dates, and ODF timestamps are UTC.
    "spark.sql.session.timeZone": "UTC",
    # TIMESTAMP is an instant, as in ODF.
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # TIME columns of inputs are readable.
    "spark.sql.timeType.enabled": "true",
    # An overflow, a division by zero or a bad cast is an error, never a silent null.
    "spark.sql.ansi.enabled": "true",
    # Dates are those of the proleptic Gregorian calendar, in text as in files of other writers.
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    # Column and table names are what the dataset says, to the letter: with Spark's default, a column that an input
    # gains one day may make the names of a query ambiguous, and a derivative that worked would stop.
    "spark.sql.caseSensitive": "true",
    # `"..."` is text, `...` in backquotes is a name, and a quoted name is not a regular expression.
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # ${env:HOME} in a query stays as it is written.
    "spark.sql.variable.substitute": "false",
    # parquet.`/some/path` is not a table.
    "spark.sql.runSQLOnFiles": "false",
    # The plan follows from the query alone, not from how much data came or how it was cut.
    "spark.sql.adaptive.enabled": "false",
    # No filter that is made while a join runs, if the sizes of files suggest it: it would leave out the same rows, but
    # also some on which an expression fails. (Which kind of join is chosen by size makes no such difference.)
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # Nor do plans follow from statistics that were collected at some time.
    "spark.sql.cbo.enabled": "false",
    # Frames of windows are added up row by row, in their order, not as a tree of partial results.
    "spark.sql.window.segmentTree.enabled": "false",
    # ORDER BY with LIMIT keeps the first rows of each task and merges these, however large it is: a sort of all rows
    # would be gathered in the order in which tasks end.
    "spark.sql.execution.topKSortFallbackThreshold": "2147483632",
    # A column of a SELECT may be made of one before it; the engine's own plans are written so.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    # Two equal keys of a map are an error, whichever came first.
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    # Bytes are bytes, missing and damaged files are errors, and a column is known by its name.
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # No row group is left out for what its statistics say. They leave out NaN, which is greater than all numbers here,
    # and Spark rounds a time before it compares it with milliseconds: a row would be there or not by the rows that
    # happen to stand beside it in a file.
    "spark.sql.parquet.filterPushdown": "false",
    # Arrow with 32-bit offsets, which is the plain layout of ODF.
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}

TUNING: Final[dict[str, str]] = {
    # A shuffle happens only where many rows are sorted; the sort makes its result independent of this number.
    "spark.sql.shuffle.partitions": "8",
    # Results are fetched in parts of bounded size.
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # What VALUES says is seen before it is evaluated, so that it can be looked at.
    "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
    # A branch of a union may have a column twice: Spark's own rules leave out aliases that told the two apart (in all
    # branches but the first, where it makes no difference), and with its default it then refuses the plan.
    "spark.sql.analyzer.unionIsResolvedWhenDuplicatesPerChildResolved": "false",
    # Code is compiled once for all pulls of a query. One pull of many rows may need 160 classes, and of those that are
    # kept, the oldest goes first: with Spark's 100, a pull finds none of the pull before, and Java begins each time
    # with code that it has not run.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Before rows are exchanged, a task adds up what it has of each group in a map that is compiled for the query. Of
    # Spark's 65536 groups, the others go to a map that takes twice as long.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    # Errors tell places in queries; PySpark would tell Java the place of each of its own calls in Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # Where in a program an RDD was made: Spark would look for it in the stack of Java, for each of them.
    "callSite.short": "odfpy",
    "callSite.long": "odfpy",
    # Nothing is kept in Hive, and nothing is written where the process was started.
    "spark.sql.catalogImplementation": "in-memory",
    # A warm engine lives long: what pulls have left over does not fill all the heap before it is let go, and of what is
    # past little is kept.
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
}

JVM_OPTIONS: Final[tuple[str, ...]] = (
    # What Java would otherwise take from the machine.
    "-Dfile.encoding=UTF-8",
    "-Duser.timezone=UTC",
    "-Duser.language=en",
    "-Duser.country=US",
    # sin, exp, log, pow and the like as the Java specification's reference algorithm has them, not as this processor
    # approximates them: between 2 and 18 of 100 results differ in their last bit otherwise.
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-UseLibmIntrinsic",
)

GUARDS: Final[tuple[str, ...]] = (
    # XML names files and addresses of its own, none of which Java opens; what a query may name is looked at before.
    "-Djavax.xml.accessExternalDTD=",
    "-Djavax.xml.accessExternalSchema=",
    "-Djavax.xml.accessExternalStylesheet=",
    # Plans are gone over by recursion: as deep as queries may nest, with room to spare.
    "-Xss4m",
)
"""Options of Java that no result depends on, for executors, too."""

GUARDED: Final[dict[str, str]] = {
    # Spark listens on the loopback interface, for itself alone: others of this machine have no secret to show.
    "spark.authenticate": "true",
    # A dataset has a file for each commit. Spark would have a task look at each of them if there are more than 32; in
    # a folder of this machine that is done at once. And a task opens a file as quickly as it reads 256 kB.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
    "spark.sql.files.openCostInBytes": "256k",
}
"""Settings of a Spark on this machine; on a cluster they are up to who runs it."""


def settings_digest() -> str:
    """Eight hexadecimal digits that change when `SETTINGS` or `JVM_OPTIONS` do."""
    lines = [f"{name}={value}" for name, value in sorted(SETTINGS.items())] + sorted(JVM_OPTIONS)
    return hashlib.sha3_256("\n".join(lines).encode()).hexdigest()[:8]


def engine_version(spark_version: str, java_version: str) -> str:
    """Return what results depend on besides query and inputs, as recorded with every transform.

    Args:
        spark_version: for example `4.3.0`.
        java_version: Java's feature release, for example `25`; it brings tables of characters and number formats.
    """
    return f"odfpy-spark/{ENGINE_RELEASE} spark/{spark_version} java/{java_version} settings/{settings_digest()}"
