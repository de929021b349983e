"""Where the files of a dataset lie: blocks, slices and linked objects by their hash, references by name."""
