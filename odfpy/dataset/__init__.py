"""Datasets as values: ids and keys, names and references, the two kinds, transforms.

    identity   `did:odf:...` and `did:key:...`, the ids that are public keys, and the key pairs
    names      aliases, patterns and references by which users name datasets
    kind       root or derivative
    transform  the inputs, queries and engine of a derivative, as its metadata has them
    proof      the signature of an answer to a query

Nothing here reads a dataset: its folder is `odfpy.coordinator.storage`, its chain `odfpy.chain`.
"""
