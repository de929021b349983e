"""Requests and answers as JSON in the format of the reference implementation's node, and commitments to them."""
