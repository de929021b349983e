"""What is staged beside the head of a dataset, and how it gets there: branches, merges and rebases."""
