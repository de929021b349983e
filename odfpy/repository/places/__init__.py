"""Datasets where they are: on file servers, on nodes, in what a repository lists."""
