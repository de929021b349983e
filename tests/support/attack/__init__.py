"""Long attacks on what parses others' bytes (`make attack`)."""
