"""Properties of a query by its plan alone: its keys, its times, its columns, and its refusals."""
