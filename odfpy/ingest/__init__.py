"""Ingest: from the bytes of a source to data slices. It neither commits nor depends on workspaces.

    fetch       new inputs of a polling source, with its state (ETag, last file)
    prepare     decompression and pipes
    read        bytes to typed rows
    preprocess  SQL queries over the rows, run by an engine
    pipeline    `ingest_rows`: normalizes rows, fits them to the schema, merges and writes them
    merge       merge strategies as SQL, shared by DuckDB and Spark; `local_merge` runs them in this process
    lanes       the same steps on Spark, for inputs larger than memory
    inference   inference of a source's definition from a file, for `odf new --from`

The coordinator (`odfpy.coordinator.ingest`) calls these packages in this order, and commits the slices.
"""
