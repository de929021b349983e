"""Sharing of tables: what is shared, with whom, under which names, columns and rows, and who has read what.

`store` persists it, `decisions` evaluates permissions, `tables` are the kinds of tables that can be shared, `files`
produces the served files. The server of the Delta Sharing protocol is in `odfpy.serving.sharing`.
"""
