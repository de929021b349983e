"""Sharing with outsiders: what is shared, with whom, under which names, columns and rows, and who has read what.

`store` keeps it, `decisions` decides, `tables` are what can be shared, `files` makes the files that go out. The server
of the Delta Sharing protocol is in `odfpy.serving.sharing`.
"""
