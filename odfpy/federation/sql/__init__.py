"""The SQL of federation, without any I/O: fragments of queries, rewritten for each relay and restricted by its grants.

`expressions` and `operators` are what fragments are made of; `reading` and `writing` convert from and to SQL.
`split` extracts fragments from a query, `mapping` rewrites them in another schema, `source` turns them into SQL for one
"""
