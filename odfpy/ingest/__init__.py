"""Ingest: from the bytes of a source to data slices; nothing here commits, or knows of workspaces.

    fetch       new inputs of a polling source, with its state (ETag, last file)
    prepare     decompression and pipes
    read        bytes to typed rows
    preprocess  SQL over them, by an engine
    pipeline    `ingest_rows`: rows are normalized, fitted to the schema, merged, and written
    merge       the merge strategies, as SQL that DuckDB and Spark share; `local_merge` runs them in this process
    lanes       the same on Spark, for inputs larger than the memory of an ingest
    inference   what `odf new --from` finds out about a file

The coordinator calls these packages in this order (`odfpy.coordinator.ingest`), and commits the slices.
"""
