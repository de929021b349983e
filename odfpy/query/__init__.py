"""Queries over datasets: SQL is planned against the heads of datasets, and answered from chain, slices or an engine.

query, answer  a query as a value, and its answer, a stream of batches
service        `QueryService.run`, for the command line, Python, REST and Flight SQL
plan           resolution of names, projections and pins, and choice of the path
resolver       lookup of datasets; servers have a resolver per caller, restricted to the datasets that it may read
references     projections in SQL: `odf_current`, `odf_as_at`, `odf_as_of`, `VERSION AS OF`
scan           selection of the slices to read, by their statistics
log_query      queries so simple that no engine is needed
wire           requests and answers as JSON, commitments and proofs
"""
