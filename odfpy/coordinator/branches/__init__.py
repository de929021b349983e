"""Branches of a dataset: staging beside the head, merging, and rebasing."""
