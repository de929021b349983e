"""The SQL of federation, without any I/O: fragments of questions, in everybody's words, under everybody's grants.

`expressions` and `operators` are what fragments are made of, `reading` and `writing` lie between these and SQL.
`split` makes fragments of a query, `mapping` puts them into the words of others, `source` into SQL for one source.
"""
