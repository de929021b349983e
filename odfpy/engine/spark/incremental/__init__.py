"""Incremental evaluation of stateful queries (docs/adr/0013-incremental-engine.md).

Queries that look at one row at a time run as plain Spark batches. For every other query, whatever its operators, the
method is the same: find the keys that new rows touch, run the user's own operators over the rows of just those keys,
once as of before the pull and once as of now, and emit the difference.

    properties  properties of the plan alone: keys, times, stateful inputs, fragments
    state       changelogs as multisets of rows, the part stored between pulls, and the changes to emit
    operators   the planner, and one module for each kind of operator
    run         one pull of a fragment
    streams     the sources of a pull: inputs, and completed fragments
"""
