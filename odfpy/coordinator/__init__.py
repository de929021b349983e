"""The coordinator: everything that a workspace can do. Start reading at `workspace`.

    verbs        the operations of a workspace, by subject: `Workspace.datasets`, `.queries`, `.maintenance`...

    storage      the folder of a workspace, its datasets, keys and signatures
    lineage      the graph of derivations
    ingest       external data, ingested into root datasets
    transform    runs of derivatives
    transfer     copies in other locations
    branches     staging areas beside a head
    reading      rows, comparisons, exports
    provenance   rows traced to their origins
    maintenance  verification, repair, clean-up

Subpackages import only those listed above them (`ROOMS` in the architecture test); the modules of this package combine
them.
"""
