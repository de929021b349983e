"""Terminal output: tables, progress, results, charts, and sanitized text."""
