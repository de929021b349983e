"""A random search for wrong answers: queries of a grammar, histories of their inputs, and plain Spark as the oracle.

- `relations`: tables and columns as the grammar sees them
- `expressions`, `operators`, `queries`: the grammar, as hypothesis strategies, so that what is found shrinks
- `histories`: rows, corrections, retractions and watermarks, pull by pull, from one number
- `trial`: one query over one history, checked after each pull
- `findings`: the smallest history that still shows what was found, and the manifests that show it to anybody
- `python -m support.search`: the search itself (`make search`)
"""
