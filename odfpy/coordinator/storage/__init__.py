"""Storage: the folder of a workspace and its content: datasets with chains, locks, references, keys and signatures.

The rest of the coordinator reads and writes datasets through this package, which does not know where data comes from.
"""
