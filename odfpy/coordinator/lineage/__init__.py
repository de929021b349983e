"""Lineage: graphs of datasets, their order, their cycles, and trees for people."""
