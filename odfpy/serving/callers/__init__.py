"""Callers and what they may see: tokens, visibility, and the datasets of each caller."""
