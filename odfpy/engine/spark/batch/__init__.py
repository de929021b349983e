"""Batch verification of an output: the expected result, computed by running the whole query once with plain Spark.

Nothing here is imported from `incremental/` or `row_by_row/`, and nothing there from here; a test and the process
itself check that. The rules for what a watermark closes are implemented a second time, from the specification and
`docs/engine.md`, and with numbers in place of symbolic watermarks, since the batch runs for one moment.

    request     what is asked, and what comes back
    tables      the current state of a changelog, as a plain table
    time_bounds what the watermarks say of a column at this moment
    computed    the same of times that are computed of others, and of windows
    conditions  what conditions say of the columns that they compare
    closed      a query with filters that keep only rows that later input can no longer change (closed rows)
    joins       the same of joins, also of those with temporal tables
    uses        whether a query shows a column
    logs        changelogs that have passed through a query row by row
    versions    a temporal table as versions
    ties        which of rows that are equal in ORDER BY comes first
    answer      all steps of a transform
    compare     how an output differs from the expected one
    job         what runs in the process of its own
"""
