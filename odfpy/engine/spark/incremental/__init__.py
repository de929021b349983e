"""Incremental queries of every class above plain Spark batch (docs/adr/0013-incremental-engine.md).

One idea carries all classes: find the keys that new rows touch, run the user's own operators over the rows of just
those keys as they were before and as they are now, and emit the difference.

    properties  what the plan alone says: keys, times, stateful inputs, fragments
    state       changelogs as multisets of rows, what is kept of them between pulls, and what to emit
    operators   the planner, and one module for each kind of operator
    run         one pull of a fragment
    streams     the sources of a pull: inputs, and fragments that have been run
"""
