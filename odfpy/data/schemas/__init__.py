"""Schemas of datasets: the specification's, Arrow's, DDL, and schema evolution."""
