"""Execution: a query is split, its fragments travel, their parts are read, and the rest runs on the client's side."""
