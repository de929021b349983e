"""Metadata chains: the blocks of a dataset, the rules for appending to them, and the stores that contain them.

    block, events      a block, and the kinds of events; `sources` and `read_steps` are parts of events
    encoding           blocks and snapshots as bytes, by means of `odfpy.codec`
    rules, new_blocks  the rules by which one block may follow another, as pure functions; batches of checked blocks
    state              the state of a chain at a block: schema, watermark, offsets, sources
    metadata_chain     a chain in stores: reads blocks, prepares new ones, and commits by moving the head
    references, stores branches and tags; objects by hash, references by name, files beside the chain
    layout             the locations of these stores in the folder of a dataset
    signatures         signatures of blocks; revocations of keys
    slices             from blocks to the Parquet files of their rows

A commit is always the same: events become blocks (`MetadataChain.prepare`), and the head moves by compare-and-swap
(`MetadataChain.commit`). The coordinator, transfers and queries call this package; engines never do.
"""
