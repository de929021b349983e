"""Inference: from sample data to the manifest of its source."""
