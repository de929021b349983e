"""Steps of splitting a query: name resolution, tables, conditions, and aggregates."""
