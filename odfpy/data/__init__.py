"""The data model: rows, schemas, slices, hashes, times, watermarks. It does not depend on workspaces, chains or
engines.

    vocabulary       the system columns, and the operation types `+A`, `-R`, `-C`, `+C`
    schemas          schemas of the specification, and the rules of their evolution
    slices           Parquet files of rows: writing, statistics, logical hashes
    multihash        hashes of bytes, which are the names of files
    watermark        policies that move the watermark of a root dataset; `lateness` counts rows behind it
    offset_interval  positions of rows in a dataset

Every other package may import this one.
"""
