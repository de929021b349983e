"""Properties of a query that follow from its plan alone: its keys, times and columns, and reasons for refusing it."""
