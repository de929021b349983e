"""The coordinator: everything that a workspace can do. Start reading at `workspace`.

    verbs        what a workspace offers, by subject: `Workspace.datasets`, `.queries`, `.maintenance`...

    storage      the folder of a workspace, its datasets, keys and signatures
    lineage      who is derived from whom
    ingest       outside data on its way into root datasets
    transform    runs of derivatives
    transfer     copies in other places
    branches     what is staged beside a head
    reading      rows, comparisons, exports
    provenance   rows followed to what they are made of
    maintenance  verification, repair, clean-up

Subpackages import only those listed above them (`ROOMS` in the architecture test); the modules of this package combine
them.
"""
