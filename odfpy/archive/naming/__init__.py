"""Words out of paths, and names out of records: patterns and templates that people write."""
