"""Previews of archived files: the beginning of their content, recognized by its bytes, and never executed."""
