"""Transfers of datasets: cloning, pulling and pushing copies, repositories, and search."""
