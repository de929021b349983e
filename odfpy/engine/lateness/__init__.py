"""Late rows: what counts as late, which slices have such rows, and how queries choose to treat them."""
