"""Sharing of tables: which columns and rows of which tables are shared with whom, and a log of who has read them.

`store` persists it, `decisions` evaluates permissions, `tables` are the kinds of tables that can be shared, `files`
produces the served files. The server of the Delta Sharing protocol is in `odfpy.serving.sharing`.
"""
