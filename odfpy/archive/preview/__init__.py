"""Previews of archived files: the beginning of what is in them, told from their bytes, and never run."""
