"""Sharing of tables: permissions on the columns and rows of tables, and an audit log of accesses.

`store` persists it, `decisions` evaluates permissions, `tables` are the kinds of tables that can be shared, `files`
produces the served files. The server of the Delta Sharing protocol is in `odfpy.serving.sharing`.
"""
