"""Queries over datasets: SQL is planned against the heads of datasets, and answered from chain, slices or an engine.

query, answer  a query as a value; its answer, a stream of batches
service        `QueryService.run`, for the command line, Python, REST and Flight SQL
plan           names, projections and pins are resolved, and the path is chosen
resolver       where datasets come from; servers have one for each caller, with what they may read
references     projections in SQL: `odf_current`, `odf_as_at`, `odf_as_of`, `VERSION AS OF`
scan           which slices are read, by their statistics
log_query      queries so simple that no engine is needed
wire           requests and answers as JSON, commitments and proofs
"""
