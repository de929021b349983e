"""Inference: from some data to what a manifest has to say of its source."""
