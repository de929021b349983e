"""Long attacks on all parsers of untrusted bytes (`make attack`)."""
