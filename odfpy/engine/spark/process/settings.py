"""Settings of Spark and its JVM that a result could depend on, all pinned (ADR 0013, "Determinism").

`SETTINGS` determine the meaning of a query; their digest is part of the engine's version, so that `odf verify` can tell
when a dataset needs another engine. `TUNING` only affects speed, and may differ between machines.
"""

from __future__ import annotations

import hashlib
from typing import Final

ENGINE_RELEASE: Final = 7
"""Incremented whenever this engine returns other results for the same query, inputs and Spark."""

SETTINGS: Final[dict[str, str]] = {
    # The machine's time zone must not affect dates, and ODF timestamps are UTC.
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
    # Column and table names are case-sensitive: with Spark's default, a column that an input gains later may make the
    # names of a query ambiguous, and a working derivative would stop.
    "spark.sql.caseSensitive": "true",
    # `"..."` is text, `...` in backquotes is a name, and a quoted name is not a regular expression.
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    # ${env:HOME} in a query stays as it is written.
    "spark.sql.variable.substitute": "false",
    # parquet.`/some/path` is not a table.
    "spark.sql.runSQLOnFiles": "false",
    # The plan depends on the query alone, not on the amount of data or how it was divided.
    "spark.sql.adaptive.enabled": "false",
    # No runtime filters of joins, which depend on file sizes: they would skip the same rows, but also some for which an
    # expression fails. (The join strategy, which also depends on size, makes no such difference.)
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    # Nor do plans follow from statistics that were collected at some time.
    "spark.sql.cbo.enabled": "false",
    # Window frames are aggregated row by row, in their order, not as a tree of partial results.
    "spark.sql.window.segmentTree.enabled": "false",
    # ORDER BY with LIMIT keeps the first rows of each task and merges these, however large it is: the rows of a full
    # sort would be gathered in the order in which tasks finish.
    "spark.sql.execution.topKSortFallbackThreshold": "2147483632",
    # A column of a SELECT may refer to an earlier one; the engine's own plans do so.
    "spark.sql.lateralColumnAlias.enableImplicitResolution": "true",
    # Two equal keys of a map are an error, in any order.
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    # Bytes are bytes, missing and damaged files are errors, and columns are matched by name.
    "spark.sql.parquet.binaryAsString": "false",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.mergeSchema": "false",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    # Row groups are not skipped by their statistics. Statistics ignore NaN, which is greater than all numbers here, and
    # Spark rounds a time before comparing it with milliseconds: whether a row is found would depend on the neighboring
    # rows in its file.
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
    # VALUES is visible before it is evaluated, so that it can be checked.
    "spark.sql.parser.eagerEvalOfUnresolvedInlineTable": "false",
    # A branch of a union may have a column twice: Spark's own rules drop aliases that distinguished the two (in all
    # branches but the first, where it makes no difference), and with the default it then rejects the plan.
    "spark.sql.analyzer.unionIsResolvedWhenDuplicatesPerChildResolved": "false",
    # Code is compiled once for all pulls of a query. One pull of many rows may need 160 classes, and the cache evicts
    # the oldest: with Spark's limit of 100, a pull would find none of the previous pull's classes, and Java would start
    # with cold code each time.
    "spark.sql.codegen.cache.maxEntries": "2000",
    # Before an exchange, a task aggregates each group in a map compiled for the query. Groups beyond Spark's 65536
    # go to a map that takes twice as long.
    "spark.sql.codegen.aggregate.fastHashMap.capacityBit": "18",
    # Errors have positions in queries; PySpark would send Java the position of each of its own calls in Python.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # The call site of an RDD: Spark would determine it from the stack of Java, for each of them.
    "callSite.short": "odfpy",
    "callSite.long": "odfpy",
    # Nothing is stored in Hive, and nothing is written to the current folder.
    "spark.sql.catalogImplementation": "in-memory",
    # A warm engine lives long: garbage of pulls must not fill the heap before it is collected, and little history
    # is kept.
    "spark.cleaner.periodicGC.interval": "5min",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "100",
}

JVM_OPTIONS: Final[tuple[str, ...]] = (
    # Defaults that Java would otherwise take from the machine.
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
    # XML may name files and addresses, none of which Java opens; what a query may name is checked before.
    "-Djavax.xml.accessExternalDTD=",
    "-Djavax.xml.accessExternalSchema=",
    "-Djavax.xml.accessExternalStylesheet=",
    # Plans are traversed recursively: as deep as queries may nest, with a margin.
    "-Xss4m",
)
"""Options of Java that no result depends on, for executors, too."""

GUARDED: Final[dict[str, str]] = {
    # Spark listens on the loopback interface, for itself alone: other users of this machine lack the secret.
    "spark.authenticate": "true",
    # A dataset has a file for each commit. Spark would list more than 32 files with tasks; in a local folder this is
    # done at once. And a task opens a file as quickly as it reads 256 kB.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
    "spark.sql.files.openCostInBytes": "256k",
}
"""Settings of a local Spark; on a cluster, its operator decides."""


def settings_digest() -> str:
    """Return eight hexadecimal digits that change when `SETTINGS` or `JVM_OPTIONS` do."""
    lines = [f"{name}={value}" for name, value in sorted(SETTINGS.items())] + sorted(JVM_OPTIONS)
    return hashlib.sha3_256("\n".join(lines).encode()).hexdigest()[:8]


def engine_version(spark_version: str, java_version: str) -> str:
    """Return the version of everything that results depend on besides query and inputs, as recorded with transforms.

    Args:
        spark_version: for example `4.3.0`.
        java_version: Java's feature release, for example `25`; it determines character tables and number formats.
    """
    return f"odfpy-spark/{ENGINE_RELEASE} spark/{spark_version} java/{java_version} settings/{settings_digest()}"
