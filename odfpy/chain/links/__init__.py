"""Linked files: determining which rows link to, checking that they exist, and counting references."""
