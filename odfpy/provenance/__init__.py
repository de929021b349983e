"""Provenance: the origin of rows, through any number of datasets (`docs/provenance.md`).

model    what is answered
hops     from a row to the rows that it is made of, dataset by dataset
graph    an answer, or the lineage of datasets, as a graph: DOT, and HTML that needs nothing else
report   an answer as text and as a tree
"""
