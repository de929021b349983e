"""Late rows: what counts as late, which slices have such rows, and what a query says is done with them."""
