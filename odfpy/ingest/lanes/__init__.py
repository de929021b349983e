"""Lanes: where the parts of an ingest run. See `docs/adr/0008-lanes.md`."""
