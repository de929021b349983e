"""The files that are served: those of a table as they are, or produced for the part that a caller may see."""
