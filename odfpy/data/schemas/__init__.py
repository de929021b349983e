"""Schemas of datasets: the specification's own, Arrow's, DDL, and how a schema may change."""
