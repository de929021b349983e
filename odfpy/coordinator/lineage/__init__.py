"""Lineage: graphs of datasets, their order and cycles, and trees for display."""
