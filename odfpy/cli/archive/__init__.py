"""`odf archive`."""
