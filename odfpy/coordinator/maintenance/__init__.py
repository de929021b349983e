"""Datasets after they were made: verification by hash and by replay, repair, clean-up, compaction, reset."""
