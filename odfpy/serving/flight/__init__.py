"""SQL over Arrow Flight for ADBC, JDBC and the `kamu` client: the query service on its own port.

`sessions` authenticates callers, `messages` parses commands, `statements` plans answers, `tickets` and `streams` return
their rows; `metadata` and `sql_info` serve the catalog requests of tools. `server` implements the calls.
"""
