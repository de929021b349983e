"""Rows in and out of Spark: inputs as tables of a query, results as batches and files."""
