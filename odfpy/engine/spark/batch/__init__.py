"""The expected output, computed by running the whole query once with plain Spark, to compare an output with.

Nothing here comes from `incremental/` or `row_by_row/`, and nothing there from here; a test and the process itself see
to that. What holds until a watermark has passed is written down anew, from the specification and `docs/engine.md`, and
with numbers in the place of rules: the batch is at one moment.

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
