"""Archives of files on servers."""
