"""SQL over Arrow Flight, as ADBC, JDBC and the client `kamu` speak it: the query service on a port of its own.

Who asks is found out in `sessions`, what is asked in `messages`, an answer is planned in `statements`, handed out as
`tickets` and run in `streams`; `metadata` and `sql_info` answer what tools ask before. `server` has the calls.
"""
