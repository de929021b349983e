"""Callers and their permissions: tokens, visibility, and the datasets that each caller may read."""
