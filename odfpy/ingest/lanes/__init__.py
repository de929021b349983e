"""Lanes: the part of an ingest that can run in this process or on Spark (docs/adr/0008-two-lanes.md)."""
