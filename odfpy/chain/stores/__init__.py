"""Stores of the files of a dataset: blocks, slices and linked objects by their hash, references by name."""
