"""Spark's logical plans seen from Python: what their operators and expressions mean, and how they are built."""
