"""Lanes: where the parts of an ingest run. See the decision record `docs/adr/0008-two-lanes.md`."""
