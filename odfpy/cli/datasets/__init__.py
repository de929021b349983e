"""Commands that create, fill, inspect and maintain datasets."""
