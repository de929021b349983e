"""Declarations of a relay: documents, their parser, the checks across them, and the steps of an apply."""
