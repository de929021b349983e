"""Lineage: graphs of datasets, their order, their circles, and trees for people."""
