"""Datasets as they are and were: rows, comparisons of two moments, files for others."""
