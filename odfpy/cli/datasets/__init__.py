"""Commands that make, fill, inspect and keep datasets."""
