"""Keyed state: rows by key, so that merges and engines need not read the history of a dataset.

    current    the interface of merges, `KeyedState`, and a scan of all slices that implements it
    indexed    the same from a key index, at a cost that does not grow with the history
    key_index  the index: for each key its last row, or a fingerprint of it
    arrangement  all rows of a key, for the incremental engine
    run_file, merging  sorted runs, of which both are made as in a log-structured merge tree
    database   DuckDB, which does the lookups

Everything here is a cache: it belongs to a block by a token, and is rebuilt or extended from slices.
"""
