"""Datasets as values: ids and keys, names and references, kinds, transforms.

    identity   `did:odf:...` and `did:key:...`, the ids that are public keys, and the key pairs
    names      aliases, patterns and references, by which users identify datasets
    kind       root or derivative
    transform  inputs, queries and engine of a derivative, as in its metadata
    proof      the signature of an answer to a query

This package does not read datasets: `odfpy.coordinator.storage` has their folders, `odfpy.chain` their chains.
"""
