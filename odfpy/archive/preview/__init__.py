"""Previews of archived files: the beginning of their content, detected by its bytes, and never executed."""
