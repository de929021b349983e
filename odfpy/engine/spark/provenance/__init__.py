"""Provenance of rows in Spark: the engine's own plans, with identifiers of input rows carried along.

identifiers  what identifies a row of an input, and how sets of these travel with the rows of a plan
annotate     a plan with the identifiers of the rows that each of its rows is made of, operator by operator
windows      the same for window functions, joins the same for joins and set operations
inputs_at    the rows of stateful inputs as they were at a metadata block, with their identifiers
find_rows    the rows that somebody asks about, and how they are found again among those of a plan
columns      from which columns of the inputs the columns of a result come
operation    what the engine does with a request
"""
