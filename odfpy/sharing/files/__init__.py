"""The served files: original files of a table, or files produced for the part that a caller may see."""
