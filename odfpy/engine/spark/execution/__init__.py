"""From an analyzed query to rows in a slice: prepared, run fragment by fragment or row by row, written, counted."""
