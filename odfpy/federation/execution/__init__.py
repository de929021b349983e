"""Execution: a query is split, its fragments travel, their parts are read, and the rest runs where the asker is."""
