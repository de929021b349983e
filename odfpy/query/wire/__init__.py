"""Questions and answers as JSON, as the reference implementation's node has them, and commitments to them."""
