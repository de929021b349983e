"""Batch verification of an output: the expected result, computed by running the whole query once with plain Spark.

Nothing here is imported from `incremental/` or `row_by_row/`, and nothing there from here; a test and the process
itself check that. The rules for what a watermark closes are implemented a second time, from the specification and
`docs/engine.md`, and with numbers in place of symbolic watermarks, since the batch runs for one moment.

    request     the request and the response
    tables      the current state of a changelog, as a plain table
    time_bounds the bounds that watermarks give for a column at this moment
    computed    the same for times computed from others, and for windows
    conditions  the bounds that conditions imply for the columns they compare
    closed      a query with filters that keep only rows that later input can no longer change (closed rows)
    joins       the same for joins, including those with temporal tables
    uses        whether a query shows a column
    logs        changelogs that have passed through a query row by row
    versions    a temporal table as versions
    ties        the order of rows that are equal in ORDER BY
    answer      all steps of a transform
    compare     how an output differs from the expected one
    job         the work of the separate process
"""
