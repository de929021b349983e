"""Parts of splitting a query: its tree, its tables, its conditions, its aggregates."""
