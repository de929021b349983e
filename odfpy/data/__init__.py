"""The data model: rows, schemas, slices, hashes, times, watermarks; values without workspaces, chains or engines.

    vocabulary       the system columns, and the operation types `+A`, `-R`, `-C`, `+C`
    schemas          schemas of the specification, and how they may change
    slices           the Parquet files of rows: written, measured, and hashed logically
    multihash        hashes of bytes, which are the names of files
    watermark        the policies that move the watermark of a root dataset; `lateness` counts rows behind it
    offset_interval  positions of rows in a dataset

Every other package may import this one.
"""
