"""From an analyzed query to rows in a slice: prepared, run block by block or row by row, written, counted."""
