"""Sandboxes for processes on Linux (namespaces, Landlock, limits), for commands from untrusted manifests."""
