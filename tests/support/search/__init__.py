"""A random search for wrong answers: generated queries, histories of their inputs, and plain Spark as the oracle.

- `relations`: tables and columns as the grammar sees them
- `expressions`, `operators`, `queries`: the grammar, as hypothesis strategies, so that findings shrink
- `histories`: rows, corrections, retractions and watermarks, pull by pull, from a seed
- `trial`: one query over one history, checked after each pull
- `findings`: the smallest history that still reproduces a finding, and manifests to reproduce it
- `python -m support.search`: the search itself (`make search`)
"""
