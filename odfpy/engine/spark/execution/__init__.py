"""Execution: from an analyzed query to rows in a slice, fragment by fragment or row by row."""
