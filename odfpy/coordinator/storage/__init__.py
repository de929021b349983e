"""Storage: the folder of a workspace and its content: datasets with chains, locks, references, keys and signatures.

The other packages of the coordinator read and write datasets through this one, which does not depend on the origin of
data.
"""
