"""Incremental queries of every class above plain Spark batch (design: "A design for the incremental engine").

One idea carries all classes: find the keys that new rows touch, run the user's own operators over the rows of just
those keys as they were before and as they are now, and emit the difference.

    times       what a watermark of the inputs says about a column
    parts       what is known of a part of a plan: keys, times, gates; blocks
    walk        from an analyzed plan to parts, one module for each kind of operator beside it
    changes     changelogs as multisets of rows
    difference  what to emit, in which order
    temporal    inputs as versions that are valid for some time; as_of joins with them
    run         one pull of a block
"""
