"""Keyed state: rows by key, so that merges and engines need not read the history of a dataset.

    current      `KeyedState`, the interface that merges use, and an implementation that scans all slices
    indexed      an implementation with a key index, at a cost that does not grow with the history
    key_index    the index: the last row of each key, or a fingerprint of it
    arrangement  all rows of each key, for the incremental engine
    run_file, merging  the sorted runs of both, organized as a log-structured merge tree
    database     DuckDB, which executes the lookups

Everything here is a cache: a token identifies the block that it belongs to, and it is rebuilt or extended from slices.
"""
