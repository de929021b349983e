"""Datasets in other places: repositories, cloning, pulling and pushing copies, and searching for them."""
