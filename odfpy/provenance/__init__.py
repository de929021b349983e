"""Provenance: the origin of rows, through any number of datasets (`docs/provenance.md`).

model    the result of a query for provenance
hops     from a row to its source rows, dataset by dataset
graph    a result, or the lineage of datasets, as a graph: DOT, and self-contained HTML
report   a result as text and as a tree
"""
