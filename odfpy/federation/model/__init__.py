"""Declarations of a relay: documents, their reading, the checks across them, and the steps of an apply."""
