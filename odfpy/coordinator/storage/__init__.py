"""The workspace's folder and what is in it: datasets with their chains, locks, references, keys and signatures.

Everything else in the coordinator reads and writes datasets through here. It knows nothing of where data comes from.
"""
