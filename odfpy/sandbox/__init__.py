"""Sandboxes for processes on Linux (namespaces, Landlock, limits), for code from untrusted manifests."""
