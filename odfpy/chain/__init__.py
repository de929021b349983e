"""Metadata chains: the blocks of a dataset, the rules for appending to them, and the stores that hold them.

    block, events      a block, and the kinds of events in it; `sources` and `read_steps` are parts of events
    encoding           blocks and snapshots as bytes; `odfpy.codec` does the work
    rules, new_blocks  which block may follow which, as pure functions; a batch of blocks that were checked
    state              what a chain says up to a block: schema, watermark, offsets, sources
    metadata_chain     a chain in stores: reads blocks, prepares new ones, and commits by moving the head
    references, stores branches and tags; objects by hash, references by name, files beside the chain
    layout             where all of that is in the folder of a dataset
    signatures         who signed which block; revocations of keys
    slices             from blocks to the Parquet files of their rows

A commit is always the same: events become blocks (`MetadataChain.prepare`), and the head moves by compare-and-swap
(`MetadataChain.commit`). The coordinator, transfers and queries call this package; engines never do.
"""
