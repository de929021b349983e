"""User-defined patterns that extract metadata from paths, and templates that build names from records."""
