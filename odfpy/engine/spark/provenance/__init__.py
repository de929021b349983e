"""Provenance of rows in Spark: the engine's own plans, which carry identifiers of input rows.

identifiers  the identifiers of input rows, and how sets of them are carried by the rows of a plan
annotate     annotates each row of a plan with the identifiers of its input rows, operator by operator
windows      the same for window functions, joins the same for joins and set operations
inputs_at    the rows of stateful inputs as of a metadata block, with their identifiers
find_rows    the traced rows, and how they are found among the rows of a plan
columns      the input columns of the columns of a result
operation    the operation of the engine for a request
"""
