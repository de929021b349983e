"""Maintenance of datasets: verification by hash and by replay, repair, garbage collection, compaction, reset."""
