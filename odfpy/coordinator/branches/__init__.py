"""Staging beside the head of a dataset: branches, merges and rebases."""
